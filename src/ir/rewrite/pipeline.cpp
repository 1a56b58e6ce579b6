// The order of lowering. A pass stands behind those that make its pattern and in front of those that take it apart.
//
// Left out of the order of Torch-TensorRT: the pair that groups pure nodes into functional subgraphs and takes them out again. All it
// leaves behind is another order of nodes, and the passes here need none of it.
#include "ir/rewrite/pipeline.h"

namespace cresset::jit {

const std::vector<std::string>& built_in_order() {
  static const std::vector<std::string> order = {
      // what the compiler of scripts left
      "eliminate_redundant_guards",
      "remove_list_mutation",
      "remove_tensor_mutation",
      "peephole",
      "fuse_linear",
      "fuse_flatten_linear",
      "eliminate_exceptions_safe",
      "cse",
      "dce",
      "mark_nodes_for_fallback",
      // one operator by simpler ones
      "unpack_hard_swish",
      "unpack_hard_sigmoid",
      "eliminate_exception_or_pass_pattern",
      "reduce_to_operation",
      "reduce_gelu",
      "reduce_remainder",
      "view_to_reshape",
      "remove_contiguous",
      "remove_dropout",
      "linear_to_addmm",
      "conv1d_to_convolution",
      "conv_transpose1d_to_convolution",
      "conv2d_to_convolution",
      "conv_transpose2d_to_convolution",
      "conv3d_to_convolution",
      "conv_transpose3d_to_convolution",
      "fuse_addmm_branches",
      "remove_bn_dim_check",
      "unpack_addmm",
      "unpack_log_softmax",
      "unpack_rsqrt",
      "unpack_std",
      "unpack_var",
      "remove_nops",
      "alias_operators",
      "unpack_silu",
      // numbers in tensors, casts, devices
      "remove_single_use_0d_tensors",
      "remove_unnecessary_casts",
      "unpack_scaled_dot_product_attention",
      "replace_aten_int",
      "remove_collection_cast",
      "unpack_and_cast_masked_fill",
      "unpack_and_cast_num_to_tensor",
      "unpack_and_cast_full",
      "replace_scalar_implicit",
      "rewrite_inputs_with_params",
      "replace_aten_pad",
      "replace_tile_with_repeat",
      "remove_to",
      "dce",
  };
  return order;
}

}  // namespace cresset::jit
