// RegisterOperators: the older way to register operators, one call an operator.
//
//   static auto registry = RegisterOperators()
//       .op("demo::scale(Tensor x, float by) -> Tensor", &scale)
//       .op(RegisterOperators::options().schema("demo::twice(Tensor x) -> Tensor").kernel<decltype(twice), &twice>(DispatchKey::CPU));
#pragma once

#include <utility>
#include <vector>

#include <cresset/dispatch/library.h>

namespace cresset {

class RegisterOperators {
 public:
  class Options {
   public:
    Options&& schema(const std::string& schema_or_name) && {
      schema_ = schema_or_name;
      return std::move(*this);
    }
    template <class F, F* function>
    Options&& kernel(DispatchKey key) && {
      return std::move(*this).add(dispatch(key, FunctionConstant<function>()));
    }
    template <class F>
    Options&& kernel(DispatchKey key, F&& f) && {
      return std::move(*this).add(dispatch(key, std::forward<F>(f)));
    }
    template <class F, F* function>
    Options&& catchAllKernel() && {
      return std::move(*this).add(CppFunction(FunctionConstant<function>()));
    }
    template <class F>
    Options&& catchAllKernel(F&& f) && {
      return std::move(*this).add(CppFunction(std::forward<F>(f)));
    }
    template <class F, F* function>
    Options&& impl_unboxedOnlyKernel(DispatchKey key) && {
      return std::move(*this).template kernel<F, function>(key);
    }
    template <class F, F* function>
    Options&& impl_unboxedOnlyCatchAllKernel() && {
      return std::move(*this).template catchAllKernel<F, function>();
    }
    Options&& aliasAnalysis(AliasAnalysisKind kind) && {
      alias_ = kind;
      return std::move(*this);
    }

   private:
    friend class RegisterOperators;
    Options&& add(CppFunction f) && {
      kernels_.push_back(std::move(f));
      return std::move(*this);
    }
    std::string schema_;
    std::vector<CppFunction> kernels_;
    std::optional<AliasAnalysisKind> alias_;
  };
  static Options options() { return {}; }

  RegisterOperators() = default;
  RegisterOperators(RegisterOperators&&) = default;
  RegisterOperators& operator=(RegisterOperators&&) = default;
  template <class F>
  RegisterOperators(const std::string& schema_or_name, F&& f, Options&& o = Options()) {
    add(schema_or_name, std::forward<F>(f), std::move(o));
  }

  RegisterOperators&& op(Options&& o) && {
    add(std::move(o));
    return std::move(*this);
  }
  RegisterOperators&& op(const std::string& schema_or_name, Options&& o = Options()) && {
    add(std::move(std::move(o).schema(schema_or_name)));
    return std::move(*this);
  }
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Options>>>
  RegisterOperators&& op(const std::string& schema_or_name, F&& f, Options&& o = Options()) && {
    add(schema_or_name, std::forward<F>(f), std::move(o));
    return std::move(*this);
  }

 private:
  template <class F>
  void add(const std::string& schema_or_name, F&& f, Options&& o) {
    add(std::move(std::move(o).schema(schema_or_name).catchAllKernel(std::forward<F>(f))));
  }
  CRESSET_API void add(Options&& o);
  std::vector<Library> libraries_;
};

}  // namespace cresset
