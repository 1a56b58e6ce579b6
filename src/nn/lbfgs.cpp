// L-BFGS, with a line search for the strong Wolfe conditions. Equations are those of Nocedal and Wright, Numerical Optimization, 2006.
#include <cresset/nn/lbfgs.h>

#include <algorithm>
#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

namespace cresset::optim {
namespace {

double largest(const Tensor& t) { return t.abs().max().item<double>(); }
double product(const Tensor& a, const Tensor& b) { return a.dot(b).item<double>(); }
/// Complex numbers as pairs of real ones.
Tensor real_view(const Tensor& t) { return t.is_complex() ? cresset::view_as_real(t) : t; }

}  // namespace

/// One place on the line of a search: step, loss, gradient, slope.
struct LBFGS::Point {
  double t, loss;
  Tensor gradient;
  double slope;
};

/// The line from the present parameters along a direction.
class LBFGS::Line {
 public:
  Line(LBFGS& optimizer, const LossClosure& closure, Tensor direction)
      : optimizer_(optimizer), closure_(closure), direction_(std::move(direction)) {
    for (const Tensor& p : optimizer.all()) start_.push_back(p.clone());
  }
  /// Evaluates at step t; the parameters are at the start again afterwards.
  Point at(double t) {
    ++calls;
    optimizer_.move(t, direction_);
    const double loss = loss_of(closure_).item<double>();
    const Tensor gradient = optimizer_.flat_gradient();
    for (std::size_t i = 0; i < start_.size(); ++i) optimizer_.all()[i].copy_(start_[i]);
    return {t, loss, gradient, product(gradient, direction_)};
  }
  Point search(const Point& start, double t, double tolerance);
  int64_t calls = 0;

 private:
  LBFGS& optimizer_;
  const LossClosure& closure_;
  const Tensor direction_;
  std::vector<Tensor> start_;
};

namespace {

constexpr double kEnoughDecrease = 1e-4, kEnoughFlattening = 0.9;  // c1 and c2 of the strong Wolfe conditions
constexpr int kSearchRounds = 25;

/// Where the cubic through two points with their slopes is lowest, within bounds (equation 3.59).
template <class Point>
double cubic_minimum(Point a, Point b, double low, double high) {
  if (a.t > b.t) std::swap(a, b);
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  return std::clamp(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)), low, high);
}

}  // namespace

/// A step that lowers the loss enough and flattens the slope (algorithms 3.5 and 3.6).
LBFGS::Point LBFGS::Line::search(const Point& start, double t, double tolerance) {
  const auto lowers_too_little = [&](const Point& p) { return p.loss > start.loss + kEnoughDecrease * p.t * start.slope; };
  const auto is_flat = [&](const Point& p) { return std::abs(p.slope) <= -kEnoughFlattening * start.slope; };
  const double length = largest(direction_);

  Point previous = start, now = at(t);
  std::optional<std::pair<Point, Point>> bracket;
  int round = 0;
  for (; round < kSearchRounds && !bracket; ++round) {
    if (lowers_too_little(now) || (round > 1 && now.loss >= previous.loss)) {
      bracket.emplace(previous, now);
      break;
    }
    if (is_flat(now)) return now;
    if (now.slope >= 0) {
      bracket.emplace(previous, now);
      break;
    }
    t = cubic_minimum(previous, now, now.t + 0.01 * (now.t - previous.t), now.t * 10);
    previous = std::exchange(now, at(t));
  }
  auto [best, other] = bracket.value_or(std::pair(start, now));
  if (other.loss < best.loss) std::swap(best, other);

  bool stuck = false;  // was the last step already near an end of the bracket?
  for (; round < kSearchRounds; ++round) {
    const auto [low, high] = std::minmax(best.t, other.t);
    if ((high - low) * length < tolerance) break;
    t = cubic_minimum(best, other, low, high);
    const double margin = 0.1 * (high - low);
    const bool near_an_end = std::min(high - t, t - low) < margin;
    if (near_an_end && (stuck || t >= high || t <= low)) {
      t = std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
      stuck = false;
    } else {
      stuck = near_an_end;
    }
    now = at(t);
    if (lowers_too_little(now) || now.loss >= best.loss) {
      other = now;
      if (other.loss < best.loss) std::swap(best, other);
      continue;
    }
    if (is_flat(now)) return now;
    if (now.slope * (other.t - best.t) >= 0) other = best;
    best = now;
  }
  return best;
}

LBFGS::LBFGS(const std::vector<OptimizerParamGroup>& groups, const LBFGSOptions& defaults) : Optimizer(groups, defaults.clone()) {
  CRESSET_CHECK_VALUE(groups_.size() == 1, "LBFGS doesn't support per-parameter options (parameter groups)");
  CRESSET_CHECK_VALUE(defaults.lr() >= 0, "Invalid learning rate: ", defaults.lr());
}

/// The gradients of all parameters as one vector of real numbers.
Tensor LBFGS::flat_gradient() const {
  std::vector<Tensor> parts;
  for (const Tensor& p : all()) parts.push_back(real_view(p.grad().defined() ? p.grad() : cresset::zeros_like(p)).reshape({-1}));
  return cresset::cat(parts, 0);
}

/// Adds t times the direction to the parameters.
void LBFGS::move(double t, const Tensor& direction) {
  int64_t at = 0;
  for (const Tensor& p : all()) {
    const Tensor real = real_view(p);
    real.add_(direction.narrow(0, at, real.numel()).view_as(real), t);
    at += real.numel();
  }
}

/// Takes the last step and what it did to the gradient into the history, unless the curvature is not positive.
void LBFGS::remember(LBFGSParamState& state, const Tensor& gradient) const {
  const Tensor change = gradient.sub(state.prev_flat_grad()), moved = state.d().mul(state.t());
  const double curvature = product(change, moved);
  if (curvature <= 1e-10) return;
  if (static_cast<int64_t>(state.old_dirs().size()) == static_cast<const LBFGSOptions&>(groups_[0].options()).history_size())
    for (std::deque<Tensor>* list : {&state.old_dirs(), &state.old_stps(), &state.ro()}) list->pop_front();
  state.old_dirs().push_back(change);
  state.old_stps().push_back(moved);
  state.ro().push_back(cresset::full({}, 1 / curvature, change.options()));
  state.H_diag(cresset::full({}, curvature / product(change, change), change.options()));
}

/// Minus the inverse Hessian's estimate times the gradient, by the two-loop recursion (algorithm 7.4).
Tensor LBFGS::direction_from(LBFGSParamState& state, const Tensor& gradient) {
  const auto &changes = state.old_dirs(), &moves = state.old_stps(), &inverse = state.ro();
  std::vector<Tensor> weights(changes.size());
  const Tensor q = gradient.neg();
  for (std::size_t i = changes.size(); i-- > 0;) {
    weights[i] = moves[i].dot(q).mul(inverse[i]);
    q.addcmul_(changes[i], weights[i], -1);
  }
  const Tensor r = q.mul(state.H_diag());
  for (std::size_t i = 0; i < changes.size(); ++i) r.addcmul_(moves[i], weights[i].sub(changes[i].dot(r).mul(inverse[i])), 1);
  state.al(std::move(weights));
  return r;
}

Tensor LBFGS::step(LossClosure closure) {
  CRESSET_CHECK(closure != nullptr, "LBFGS requires a closure function");
  const NoGradGuard no_grad;
  const auto& o = static_cast<const LBFGSOptions&>(groups_[0].options());
  const bool searches = o.line_search_fn().has_value();
  CRESSET_CHECK(!searches || o.line_search_fn() == "strong_wolfe", "only 'strong_wolfe' is supported");
  const int64_t most_evaluations = o.max_eval().value_or(o.max_iter() * 5 / 4);

  LBFGSParamState& state = state_of<LBFGSParamState>(all().at(0));
  const Tensor first_loss = loss_of(closure);
  double loss = first_loss.item<double>();
  Tensor gradient = flat_gradient();
  int64_t evaluations = 1;
  ++state.func_evals();
  if (largest(gradient) <= o.tolerance_grad()) return first_loss;

  for (int64_t iteration = 1; iteration <= o.max_iter(); ++iteration) {
    const bool first = ++state.n_iter() == 1;
    if (first) {
      state.d(gradient.neg());
      state.H_diag(cresset::ones({}, gradient.options()));
    } else {
      remember(state, gradient);
      state.d(direction_from(state, gradient));
    }
    state.prev_flat_grad(gradient.clone()).prev_loss(loss);
    state.t(first ? std::min(1.0, 1 / gradient.abs().sum().item<double>()) * o.lr() : o.lr());
    const double slope = product(gradient, state.d());
    if (slope > -o.tolerance_change()) break;

    int64_t calls = 0;
    if (searches) {
      Line line(*this, closure, state.d());
      const Point found = line.search({0, loss, gradient, slope}, state.t(), o.tolerance_change());
      state.t(found.t);
      loss = found.loss;
      gradient = found.gradient;
      calls = line.calls;
      move(state.t(), state.d());
    } else {
      move(state.t(), state.d());
      if (iteration != o.max_iter()) {
        loss = loss_of(closure).item<double>();
        gradient = flat_gradient();
        calls = 1;
      }
    }
    evaluations += calls;
    state.func_evals() += calls;
    if (evaluations >= most_evaluations || largest(gradient) <= o.tolerance_grad() ||
        largest(state.d().mul(state.t())) <= o.tolerance_change() || std::abs(loss - state.prev_loss()) < o.tolerance_change())
      break;
  }
  return first_loss;
}

// Files of the time before states hold these fields themselves, the lists by size and numbers; counts, ro and al they lack.
void LBFGS::load_old(serialize::InputArchive& archive) {
  Tensor t, previous_loss;
  CRESSET_CHECK(archive.try_read("t", t, true), "the archive has neither 'param_groups' nor 't': it is not this optimizer's.");
  warn("Your serialized LBFGS optimizer is still using the old serialization format. Save it again to have it in the new one.");
  archive.read("prev_loss", previous_loss, true);
  auto read = std::make_unique<LBFGSParamState>();
  read->t(t.item<double>()).prev_loss(previous_loss.item<double>());
  archive.read("d", read->d(), true);
  archive.read("H_diag", read->H_diag(), true);
  archive.read("prev_flat_grad", read->prev_flat_grad(), true);
  const auto list = [&](const std::string& name, std::deque<Tensor>& into) {
    Tensor size;
    archive.read(name + "/size", size);
    for (int64_t i = 0; i < size.item<int64_t>(); ++i) archive.read(name + "/" + std::to_string(i), into.emplace_back(), true);
  };
  list("old_dirs", read->old_dirs());
  list("old_stps", read->old_stps());
  CRESSET_CHECK(read->old_stps().empty() || read->old_stps().size() == read->old_dirs().size(), "LBFGS: the archive has ",
                read->old_dirs().size(), " old_dirs and ", read->old_stps().size(), " old_stps.");
  for (std::size_t i = 0; i < read->old_stps().size(); ++i) read->ro().push_back(read->old_dirs()[i].dot(read->old_stps()[i]).reciprocal());
  state_[all().at(0).unsafeGetTensorImpl()] = std::move(read);
}

}  // namespace cresset::optim
