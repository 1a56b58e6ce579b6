// How modules write themselves.
#include <cresset/nn/print.h>

#include <ios>
#include <ostream>
#include <type_traits>

namespace cresset::nn::detail {

namespace {
/// Writes the name, and the options between brackets with commas where they belong.
class Printer {
 public:
  Printer(std::ostream& stream, const char* name) : stream_(stream), flags_(stream.flags()) {
    stream_ << std::boolalpha << "torch::nn::" << name << "(";
  }
  /// A stream may be set to raise; what is raised here is lost, and its state keeps the failure.
  ~Printer() {
    try {
      stream_ << ")";
    } catch (...) {
    }
    stream_.flags(flags_);
  }
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;

  template <class T>
  Printer& operator()(const char* label, const T& value) {
    separate();
    stream_ << label << "=";
    write(value);
    return *this;
  }
  /// Without a label.
  template <class T>
  Printer& operator()(const T& value) {
    separate();
    write(value);
    return *this;
  }
  /// Only where it is not what it is without being given.
  template <class T, class D>
  Printer& unless(const char* label, const T& value, const D& usual) {
    return value == T(usual) ? *this : (*this)(label, value);
  }

 private:
  void separate() {
    if (!first_) stream_ << ", ";
    first_ = false;
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void write(T value) {
    stream_ << value;
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value)
      write(*value);
    else
      stream_ << "None";
  }
  template <class T>
  void write(const std::vector<T>& values) {
    list(values);
  }
  template <std::size_t D, class T>
  void write(const ExpandingArray<D, T>& values) {
    if constexpr (D == 1)
      write((*values)[0]);
    else
      list(*values);
  }
  template <class... T>
  void write(const std::variant<T...>& choice) {
    std::visit(
        [this](const auto& v) {
          if constexpr (requires { v.text; })
            stream_ << v.text;
          else
            write(v);
        },
        choice);
  }
  template <class L>
  void list(const L& values) {
    stream_ << "[";
    bool first = true;
    for (const auto& value : values) {
      if (!first) stream_ << ", ";
      first = false;
      write(value);
    }
    stream_ << "]";
  }

  std::ostream& stream_;
  std::ios_base::fmtflags flags_;
  bool first_ = true;
};

template <std::size_t D>
bool all_are(const ExpandingArray<D>& values, int64_t value) {
  return *values == *ExpandingArray<D>(value);
}

template <class Options>
void print_convolution(std::ostream& stream, const char* name, const Options& o) {
  Printer print(stream, name);
  print(o.in_channels())(o.out_channels())("kernel_size", o.kernel_size())("stride", o.stride());
  if constexpr (requires { o.output_padding(); }) {
    if (!all_are(o.padding(), 0)) print("padding", o.padding());
    if (!all_are(o.output_padding(), 0)) print("output_padding", o.output_padding());
  } else {
    using Sizes = std::decay_t<decltype(o.stride())>;
    const auto* sizes = std::get_if<Sizes>(&o.padding());
    if (!sizes || !all_are(*sizes, 0)) print("padding", o.padding());
  }
  if (!all_are(o.dilation(), 1)) print("dilation", o.dilation());
  print.unless("groups", o.groups(), 1).unless("bias", o.bias(), true);
  if (!std::holds_alternative<enumtype::kZeros>(o.padding_mode())) print("padding_mode", o.padding_mode());
}

template <class Options>
void print_norm(std::ostream& stream, const char* name, const Options& o) {
  Printer(stream, name)(o.num_features())("eps", o.eps())("momentum", o.momentum())("affine", o.affine())("track_running_stats",
                                                                                                          o.track_running_stats());
}
template <class Options>
void print_activation(std::ostream& stream, const char* name, const char* label, double value, const Options& o) {
  Printer(stream, name)(label, value).unless("inplace", o.inplace(), false);
}
template <class Options>
void print_recurrent(std::ostream& stream, const char* name, const Options& o, int64_t proj_size = 0) {
  Printer print(stream, name);
  print("input_size", o.input_size())("hidden_size", o.hidden_size())("num_layers", o.num_layers())("bias", o.bias());
  print("batch_first", o.batch_first())("dropout", o.dropout())("bidirectional", o.bidirectional()).unless("proj_size", proj_size, 0);
}
}  // namespace

void print_without_options(std::ostream& stream, const char* name) { Printer(stream, name); }

#define CRESSET_NN_PRINT(Options, ...)                                           \
  void print_options(std::ostream& stream, const char* name, const Options& o) { \
    Printer print(stream, name);                                                 \
    print __VA_ARGS__;                                                           \
  }
CRESSET_NN_PRINT(FlattenOptions, ("start_dim", o.start_dim())("end_dim", o.end_dim()))
CRESSET_NN_PRINT(FoldOptions,
                 ("output_size", o.output_size())("kernel_size",
                                                  o.kernel_size())("dilation", o.dilation())("padding", o.padding())("stride", o.stride()))
CRESSET_NN_PRINT(UnfoldOptions, ("kernel_size", o.kernel_size())("dilation", o.dilation())("padding", o.padding())("stride", o.stride()))
CRESSET_NN_PRINT(LayerNormOptions, (o.normalized_shape())("eps", o.eps())("elementwise_affine", o.elementwise_affine()))
CRESSET_NN_PRINT(GroupNormOptions, (o.num_groups())(o.num_channels())("eps", o.eps())("affine", o.affine()))
CRESSET_NN_PRINT(LocalResponseNormOptions, (o.size())("alpha", o.alpha())("beta", o.beta())("k", o.k()))
CRESSET_NN_PRINT(DropoutOptions, ("p", o.p())("inplace", o.inplace()))
CRESSET_NN_PRINT(ReLUOptions, .unless("inplace", o.inplace(), false))
CRESSET_NN_PRINT(GLUOptions, ("dim", o.dim()))
CRESSET_NN_PRINT(HardshrinkOptions, (o.lambda()))
CRESSET_NN_PRINT(HardtanhOptions, ("min_val", o.min_val())("max_val", o.max_val()).unless("inplace", o.inplace(), false))
CRESSET_NN_PRINT(RReLUOptions, ("lower", o.lower())("upper", o.upper()).unless("inplace", o.inplace(), false))
CRESSET_NN_PRINT(SoftmaxOptions, ("dim", o.dim()))
CRESSET_NN_PRINT(PReLUOptions, ("num_parameters", o.num_parameters()))
CRESSET_NN_PRINT(SoftplusOptions, ("beta", o.beta())("threshold", o.threshold()))
CRESSET_NN_PRINT(ThresholdOptions, ("threshold", o.threshold())("value", o.value()).unless("inplace", o.inplace(), false))
CRESSET_NN_PRINT(PixelShuffleOptions, ("upscale_factor", o.upscale_factor()))
CRESSET_NN_PRINT(PixelUnshuffleOptions, ("downscale_factor", o.downscale_factor()))
CRESSET_NN_PRINT(CosineSimilarityOptions, ("dim", o.dim())("eps", o.eps()))
CRESSET_NN_PRINT(PairwiseDistanceOptions, ("p", o.p())("eps", o.eps())("keepdim", o.keepdim()))
CRESSET_NN_PRINT(HingeEmbeddingLossOptions, ("margin", o.margin()))
CRESSET_NN_PRINT(CosineEmbeddingLossOptions, ("margin", o.margin()))
CRESSET_NN_PRINT(TripletMarginLossOptions, ("margin", o.margin())("p", o.p())("eps", o.eps())("swap", o.swap()))
CRESSET_NN_PRINT(TripletMarginWithDistanceLossOptions, ("margin", o.margin())("swap", o.swap()))
CRESSET_NN_PRINT(LSTMCellOptions, (o.input_size())(o.hidden_size()).unless("bias", o.bias(), true))
CRESSET_NN_PRINT(GRUCellOptions, (o.input_size())(o.hidden_size()).unless("bias", o.bias(), true))
#define CRESSET_NN_DIMENSIONS(D)                                                                                                   \
  CRESSET_NN_PRINT(AvgPoolOptions<D>, ("kernel_size", o.kernel_size())("stride", o.stride())("padding", o.padding()))              \
  CRESSET_NN_PRINT(MaxPoolOptions<D>, ("kernel_size", o.kernel_size())("stride", o.stride())("padding", o.padding())(              \
                                          "dilation", o.dilation())("ceil_mode", o.ceil_mode()))                                   \
  CRESSET_NN_PRINT(LPPoolOptions<D>,                                                                                               \
                   ("norm_type", o.norm_type())("kernel_size", o.kernel_size())("stride", o.stride())("ceil_mode", o.ceil_mode())) \
  CRESSET_NN_PRINT(MaxUnpoolOptions<D>, ("kernel_size", o.kernel_size())("stride", o.stride())("padding", o.padding()))            \
  CRESSET_NN_PRINT(AdaptivePoolOptions<D>, ("output_size", o.output_size()))                                                       \
  CRESSET_NN_PRINT(PadOptions<D>, ("padding", o.padding()))                                                                        \
  CRESSET_NN_PRINT(ConstantPadOptions<D>, ("padding", o.padding())("value", o.value()))                                            \
  void print_options(std::ostream& stream, const char* name, const ConvOptions<D>& o) { print_convolution(stream, name, o); }      \
  void print_options(std::ostream& stream, const char* name, const ConvTransposeOptions<D>& o) { print_convolution(stream, name, o); }
CRESSET_NN_DIMENSIONS(1)
CRESSET_NN_DIMENSIONS(2)
CRESSET_NN_DIMENSIONS(3)
#undef CRESSET_NN_DIMENSIONS
#undef CRESSET_NN_PRINT

void print_options(std::ostream& stream, const char* name, const UnflattenOptions& o) {
  if (!o.namedshape().empty()) {
    stream << "torch::nn::" << name << "(dim=\"" << o.dimname() << "\", unflattened_size={";
    const char* between = "";
    for (const auto& [part, size] : o.namedshape()) stream << std::exchange(between, ", ") << "{\"" << part << "\", " << size << "}";
    stream << "})";
    return;
  }
  stream << "torch::nn::" << name << "(dim=" << o.dim() << ", unflattened_size={";
  for (std::size_t i = 0; i < o.sizes().size(); ++i) stream << (i ? ", " : "") << o.sizes()[i];
  stream << "})";
}
void print_options(std::ostream& stream, const char* name, const EmbeddingOptions& o) {
  Printer print(stream, name);
  print("num_embeddings", o.num_embeddings())("embedding_dim", o.embedding_dim());
  if (o.padding_idx()) print("padding_idx", o.padding_idx());
  if (o.max_norm()) print("max_norm", o.max_norm());
  print.unless("norm_type", o.norm_type(), 2)
      .unless("scale_grad_by_freq", o.scale_grad_by_freq(), false)
      .unless("sparse", o.sparse(), false);
}
void print_options(std::ostream& stream, const char* name, const EmbeddingBagOptions& o) {
  Printer print(stream, name);
  print("num_embeddings", o.num_embeddings())("embedding_dim", o.embedding_dim());
  if (o.max_norm()) print("max_norm", o.max_norm());
  print.unless("norm_type", o.norm_type(), 2)
      .unless("scale_grad_by_freq", o.scale_grad_by_freq(), false)
      .unless("sparse", o.sparse(), false);
  if (!std::holds_alternative<enumtype::kMean>(o.mode())) print("mode", o.mode());
  print.unless("include_last_offset", o.include_last_offset(), false);
  if (o.padding_idx()) print("padding_idx", o.padding_idx());
}
void print_options(std::ostream& stream, const char* name, const BatchNormOptions& o) { print_norm(stream, name, o); }
void print_options(std::ostream& stream, const char* name, const InstanceNormOptions& o) { print_norm(stream, name, o); }
void print_options(std::ostream& stream, const char* name, const ELUOptions& o) { print_activation(stream, name, "alpha", o.alpha(), o); }
void print_options(std::ostream& stream, const char* name, const LeakyReLUOptions& o) {
  print_activation(stream, name, "negative_slope", o.negative_slope(), o);
}
void print_options(std::ostream& stream, const char* name, const UpsampleOptions& o) {
  Printer print(stream, name);
  if (o.scale_factor())
    print("scale_factor", *o.scale_factor());
  else
    print("size", o.size());
  print("mode", o.mode());
}
void print_options(std::ostream& stream, const char* name, const RNNOptions& o) { print_recurrent(stream, name, o); }
void print_options(std::ostream& stream, const char* name, const GRUOptions& o) { print_recurrent(stream, name, o); }
void print_options(std::ostream& stream, const char* name, const LSTMOptions& o) { print_recurrent(stream, name, o, o.proj_size()); }
void print_options(std::ostream& stream, const char* name, const RNNCellOptions& o) {
  Printer print(stream, name);
  print(o.input_size())(o.hidden_size()).unless("bias", o.bias(), true);
  if (!std::holds_alternative<enumtype::kTanh>(o.nonlinearity())) print("nonlinearity", o.nonlinearity());
}

}  // namespace cresset::nn::detail
