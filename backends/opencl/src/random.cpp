// Random numbers of the device's counter-based stream (cresset/core/philox.h): the same for a seed on every device.
#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/device_generator.h>

#include "backend.h"
#include "call.h"

namespace cresset_opencl {
namespace {

struct Stream {
  uint64_t seed, first_block;
};

// Reserves words, in whole blocks of four.
Stream take(const Call& c, int generator, const Tensor& on, int64_t words) {
  const bool given = !c.none(generator);
  const cresset::Generator g = given ? c.generator(generator) : cresset::default_generator_of(on.device());
  CRESSET_CHECK(g.device().type() == on.device().type(), "Expected a generator of ", on.device(), "; given one of ", g.device(), ".");
  auto* impl = g.get<cresset::DeviceGeneratorImpl>();
  std::lock_guard lock(g.mutex());
  const uint64_t blocks = static_cast<uint64_t>(words + 3) / 4, position = (impl->get_offset() + 3) / 4;
  impl->set_offset((position + blocks) * 4);
  return {impl->current_seed(), position};
}

bool is_wide(const Tensor& t) { return t.scalar_type() == cresset::kDouble; }

class Fill {
 public:
  Fill(const Call& c, int generator, const char* kernel, int64_t words, const Tensor& out, Compute compute, bool wide)
      : out_(out),
        stream_(take(c, generator, out, words)),
        launch_(out, "random", kernel,
                std::string("-DT=") + type_letter(out.scalar_type()) + " -DA=" + compute_name(compute) + " -DWIDE=" + (wide ? "1" : "0")) {
    launch_.tensor(out).value<cl_ulong>(out.numel()).value<cl_ulong>(stream_.first_block).value<cl_ulong>(stream_.seed);
  }
  Launch& arguments() { return launch_; }
  bool run() {
    launch_.run(static_cast<std::size_t>(out_.numel()));
    return true;
  }

 private:
  Tensor out_;
  Stream stream_;
  Launch launch_;
};

bool is_floating(const Tensor& t) {
  const Compute c = compute_of(t.scalar_type());
  return c == Compute::Float || c == Compute::Double;
}

// uniform_(self, from, to, generator)
bool uniform(Call& c) {
  const Tensor& out = c.result();
  if (!is_floating(out)) return false;
  const Compute compute = compute_of(out.scalar_type());
  Fill fill(c, 3, "uniform", out.numel() * (is_wide(out) ? 2 : 1), out, compute, is_wide(out));
  fill.arguments().number(compute, c.real(1)).number(compute, c.real(2) - c.real(1)).number(compute, c.real(2));
  return fill.run();
}

// normal_(self, mean, std, generator)
bool normal(Call& c) {
  const Tensor& out = c.result();
  CRESSET_CHECK(c.real(2) >= 0, "normal expects std >= 0.0, but found std ", c.real(2));
  if (!is_floating(out)) return false;
  const Compute compute = compute_of(out.scalar_type());
  const int64_t whole = (out.numel() + 15) / 16 * 16;
  Fill fill(c, 3, "normal", whole * (is_wide(out) ? 2 : 1), out, compute, is_wide(out));
  fill.arguments().number(compute, c.real(1)).number(compute, c.real(2));
  return fill.run();
}

// bernoulli_.float(self, p, generator)
bool bernoulli(Call& c) {
  CRESSET_CHECK(c.real(1) >= 0 && c.real(1) <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", c.real(1));
  Fill fill(c, 2, "bernoulli", c.result().numel(), c.result(), Compute::Float, false);
  fill.arguments().number(Compute::Float, c.real(1));
  return fill.run();
}

// random_.from(self, from, to, generator)
bool integers(Call& c) {
  if (c.none(2) || is_floating(c.result())) return false;
  const int64_t from = c.integer(1), to = c.integer(2);
  if (from >= to) return false;  // the CPU's kernel says what is wrong
  const uint64_t span = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  const bool wide = span > std::numeric_limits<uint32_t>::max();
  Fill fill(c, 3, "integers", c.result().numel() * (wide ? 2 : 1), c.result(), Compute::Float, false);
  fill.arguments().value<cl_long>(from).value<cl_ulong>(span).value<cl_int>(wide);
  return fill.run();
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give_in_place(m, "uniform_", &uniform);
  give_in_place(m, "normal_", &normal);
  give_in_place(m, "bernoulli_.float", &bernoulli);
  give_in_place(m, "random_.from", &integers);
}
