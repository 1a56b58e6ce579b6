"""Which of NumPy's functions the package has."""

# Element by element.
UNARY = """abs absolute arccos arccosh arcsin arcsinh arctan arctanh bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor invert
isfinite isinf isnan log log10 log1p log2 logical_not negative positive rad2deg radians reciprocal rint sign signbit sin sinh sqrt square tan tanh trunc""".split()
BINARY = """add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide divmod equal float_power floor_divide fmax fmin fmod gcd greater greater_equal heaviside
hypot lcm ldexp left_shift less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor matmul maximum minimum mod modf multiply nextafter not_equal
power remainder right_shift subtract true_divide""".split()
OTHERS = """all allclose amax amin angle any append arange argmax argmin argsort argwhere around array_equal array_equiv array_split atleast_1d atleast_2d
atleast_3d average bartlett bincount blackman broadcast_arrays broadcast_shapes broadcast_to choose clip column_stack concatenate convolve copy copyto corrcoef
correlate count_nonzero cov cross cumprod cumsum diag diag_indices diag_indices_from diagflat diagonal diff dot dsplit dstack einsum empty empty_like
expand_dims eye fill_diagonal fix flatnonzero flip fliplr flipud full full_like geomspace gradient hamming hanning histogram histogram2d histogramdd hsplit
hstack i0 identity imag indices inner isclose iscomplex iscomplexobj isneginf isposinf isreal isrealobj kaiser kron linspace logspace max mean median
meshgrid min moveaxis nan_to_num ndim nonzero ones ones_like outer pad percentile prod ptp put put_along_axis quantile ravel real real_if_close repeat reshape
resize roll rollaxis rot90 round searchsorted shape sinc size sort split squeeze stack std sum swapaxes take take_along_axis tensordot tile trace transpose tri
tril tril_indices tril_indices_from triu triu_indices triu_indices_from unique vander var vdot vsplit vstack where zeros zeros_like min_scalar_type
common_type ascontiguousarray""".split()
# Names that NumPy 2 no longer has.
OLD = {
    "alltrue": "all", "cumproduct": "cumprod", "product": "prod", "round_": "round", "row_stack": "vstack", "sometrue": "any",
}  # fmt: skip
CONSTANTS = "e euler_gamma inf nan newaxis pi".split()
