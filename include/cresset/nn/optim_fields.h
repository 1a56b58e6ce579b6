// What an optimiser is told and what it remembers: classes whose fields are listed once, for copies, comparisons and archives.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/dispatch/boxing.h>
#include <cresset/nn/archive.h>
#include <cresset/nn/arg.h>

/// In a class with fields of CRESSET_ARG: visit(f) calls f(name, reference) for every field named by CRESSET_OPTIM_VISIT, and == compares
/// them.
#define CRESSET_OPTIM_FIELDS(Name, ...)                                                                                                    \
  template <class F>                                                                                                                       \
  void visit_both([[maybe_unused]] Name& other, F&& f) {                                                                                   \
    __VA_ARGS__                                                                                                                            \
  }                                                                                                                                        \
  template <class F>                                                                                                                       \
  void visit(F&& f) {                                                                                                                      \
    visit_both(*this, [&f](const char* name, auto& own, auto&) { f(name, own); });                                                         \
  }                                                                                                                                        \
  friend bool operator==(const Name& a, const Name& b) {                                                                                   \
    Name x(a), y(b);                                                                                                                       \
    bool same = true;                                                                                                                      \
    x.visit_both(y,                                                                                                                        \
                 [&same](const char*, const auto& own, const auto& others) { same = same && ::cresset::optim::same_field(own, others); }); \
    return same;                                                                                                                           \
  }
#define CRESSET_OPTIM_VISIT(name) f(#name, this->name(), other.name());

namespace cresset::optim {

// ---- fields

template <class T>
bool same_field(const T& a, const T& b) {
  return a == b;
}
/// Equal sizes and values; undefined ones are equal to each other.
CRESSET_API bool same_field(const Tensor& a, const Tensor& b);
CRESSET_API bool same_field(const std::deque<Tensor>& a, const std::deque<Tensor>& b);
CRESSET_API bool same_field(const std::optional<std::vector<Tensor>>& a, const std::optional<std::vector<Tensor>>& b);

// In an archive a tensor that is undefined and a list that is not there have no entry, a pair has two, a list is a part.
template <class T>
void write_field(serialize::OutputArchive& archive, const std::string& name, const T& value) {
  archive.write(name, IValue(value));
}
template <class T>
void read_field(serialize::InputArchive& archive, const std::string& name, T& value) {
  IValue read;
  archive.read(name, read);
  value = read.to<T>();
}
CRESSET_API void write_field(serialize::OutputArchive& archive, const std::string& name, const std::tuple<double, double>& value);
CRESSET_API void read_field(serialize::InputArchive& archive, const std::string& name, std::tuple<double, double>& value);
CRESSET_API void write_field(serialize::OutputArchive& archive, const std::string& name, const Tensor& value);
CRESSET_API void read_field(serialize::InputArchive& archive, const std::string& name, Tensor& value);
CRESSET_API void write_field(serialize::OutputArchive& archive, const std::string& name, const std::deque<Tensor>& value);
CRESSET_API void read_field(serialize::InputArchive& archive, const std::string& name, std::deque<Tensor>& value);
CRESSET_API void write_field(serialize::OutputArchive& archive, const std::string& name, const std::optional<std::vector<Tensor>>& value);
CRESSET_API void read_field(serialize::InputArchive& archive, const std::string& name, std::optional<std::vector<Tensor>>& value);

template <class Derived>
void write_fields(serialize::OutputArchive& archive, const Derived& fields) {
  if constexpr (requires(Derived& d) { d.visit([](const auto&, auto&) {}); }) {
    Derived copy(fields);
    copy.visit([&](const std::string& name, auto& value) { write_field(archive, name, value); });
  } else {
    CRESSET_THROW(Error, "serialize() has not been implemented by these options or this state: they have no visit()");
  }
}
template <class Derived>
void read_fields(serialize::InputArchive& archive, Derived& fields) {
  if constexpr (requires(Derived& d) { d.visit([](const auto&, auto&) {}); })
    fields.visit([&](const std::string& name, auto& value) { read_field(archive, name, value); });
  else
    CRESSET_THROW(Error, "serialize() has not been implemented by these options or this state: they have no visit()");
}

// ---- options and states

/// What an optimiser is told: its defaults, and each group's own. A program's own options derive OptimizerCloneableOptions; what a class
/// does not override raises.
class CRESSET_API OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const;
  virtual double get_lr() const;
  virtual void set_lr(double lr);
  virtual void serialize(serialize::OutputArchive& archive) const;
  virtual void serialize(serialize::InputArchive& archive);
};

/// Derived::visit(f) calls f(name, reference) for every option; options without it cannot be saved, without lr() not scheduled.
template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override { return std::make_unique<Derived>(static_cast<const Derived&>(*this)); }
  double get_lr() const override {
    if constexpr (requires(const Derived& d) { d.lr(); })
      return static_cast<const Derived&>(*this).lr();
    else
      CRESSET_THROW(Error, "double get_lr() has not been overidden and implemented in subclass of torch::optim::OptimizerOptions");
  }
  void set_lr(double lr) override {
    if constexpr (requires(Derived& d) { d.lr(lr); })
      static_cast<Derived&>(*this).lr(lr);
    else
      CRESSET_THROW(Error, "double set_lr() has not been overidden and implemented in subclass of torch::optim::OptimizerOptions");
  }
  void serialize(serialize::OutputArchive& archive) const override { write_fields(archive, static_cast<const Derived&>(*this)); }
  void serialize(serialize::InputArchive& archive) override { read_fields(archive, static_cast<Derived&>(*this)); }
};

/// What an optimiser remembers of a parameter.
class CRESSET_API OptimizerParamState {
 public:
  virtual ~OptimizerParamState() = default;
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;
  virtual void serialize(serialize::OutputArchive& archive) const = 0;
  virtual void serialize(serialize::InputArchive& archive) = 0;
};

/// The same with Derived::visit(), like the options.
template <class Derived>
class OptimizerCloneableParamState : public OptimizerParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override { return std::make_unique<Derived>(static_cast<const Derived&>(*this)); }
  void serialize(serialize::OutputArchive& archive) const override { write_fields(archive, static_cast<const Derived&>(*this)); }
  void serialize(serialize::InputArchive& archive) override { read_fields(archive, static_cast<Derived&>(*this)); }
};

}  // namespace cresset::optim
