"""What the convolutions of whole numbers do with an input: a function for each, in which the operator is written out, for scripts compile its source."""

import cresset

__all__ = ["FORWARDS"]


def conv1d(self, input):
    return cresset.ops.quantized.conv1d(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv_transpose1d(self, input):
    return cresset.ops.quantized.conv_transpose1d(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv1d_relu(self, input):
    return cresset.ops.quantized.conv1d_relu(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv1d_dynamic(self, input, reduce_range: bool = True):
    return cresset.ops.quantized.conv1d_dynamic(self._padded(input), self._packed_params, reduce_range)


def conv_transpose1d_dynamic(self, input, reduce_range: bool = True):
    return cresset.ops.quantized.conv_transpose1d_dynamic(self._padded(input), self._packed_params, reduce_range)


def conv2d(self, input):
    return cresset.ops.quantized.conv2d(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv_transpose2d(self, input):
    return cresset.ops.quantized.conv_transpose2d(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv2d_relu(self, input):
    return cresset.ops.quantized.conv2d_relu(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv2d_dynamic(self, input, reduce_range: bool = True):
    return cresset.ops.quantized.conv2d_dynamic(self._padded(input), self._packed_params, reduce_range)


def conv_transpose2d_dynamic(self, input, reduce_range: bool = True):
    return cresset.ops.quantized.conv_transpose2d_dynamic(self._padded(input), self._packed_params, reduce_range)


def conv3d(self, input):
    return cresset.ops.quantized.conv3d(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv_transpose3d(self, input):
    return cresset.ops.quantized.conv_transpose3d(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv3d_relu(self, input):
    return cresset.ops.quantized.conv3d_relu(self._padded(input), self._packed_params, self.scale, self.zero_point)


def conv3d_dynamic(self, input, reduce_range: bool = True):
    return cresset.ops.quantized.conv3d_dynamic(self._padded(input), self._packed_params, reduce_range)


def conv_transpose3d_dynamic(self, input, reduce_range: bool = True):
    return cresset.ops.quantized.conv_transpose3d_dynamic(self._padded(input), self._packed_params, reduce_range)


def conv2d_add(self, input, extra_input):
    return cresset.ops.quantized.conv2d_add(self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point)


def conv2d_add_relu(self, input, extra_input):
    return cresset.ops.quantized.conv2d_add_relu(self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point)


# By the name of the operator.
FORWARDS = {name: function for name, function in globals().items() if name.startswith("conv")}
