// Scalar functions of the operator table's expressions, for one compute type T. IS_FLOAT says whether T is float or double.
// generate/pointwise.py takes the functions that an expression needs; each starts behind a line "//// name".

//// exp
#define cr_exp exp
//// exp2
#define cr_exp2 exp2
//// expm1
#define cr_expm1 expm1
//// log
#define cr_log log
//// log2
#define cr_log2 log2
//// log10
#define cr_log10 log10
//// log1p
#define cr_log1p log1p
//// sin
#define cr_sin sin
//// cos
#define cr_cos cos
//// tan
#define cr_tan tan
//// asin
#define cr_asin asin
//// acos
#define cr_acos acos
//// atan
#define cr_atan atan
//// sinh
#define cr_sinh sinh
//// cosh
#define cr_cosh cosh
//// tanh
// Exactly 1 where that is the nearest number: drivers may be off by one, which a factor of infinity shows.
static T cr_tanh(T x) { return fabs(x) > (T)(sizeof(T) > 4 ? 20 : 10) ? copysign((T)1, x) : tanh(x); }
//// asinh
#define cr_asinh asinh
//// acosh
#define cr_acosh acosh
//// atanh
#define cr_atanh atanh
//// erf
// Compilers for processors call a scalar function for erf. These polynomials, fitted for this file, are within 3 units in the last place of a float.
#define ERF_SMALL(t)                                                                                                                  \
  (1.12837917f + (t) * (-0.376126385f + (t) * (0.112837826f + (t) * (-0.0268654384f + (t) * (0.00522105353f + (t) * (-0.000848439761f + \
  (t) * (0.000112682577f + (t) * -9.67359247e-06f)))))))
#define ERF_LARGE(x)                                                                                                                  \
  (-0.00019147654f + (x) * (1.1295939f + (x) * (0.633190575f + (x) * (0.108448833f + (x) * (-0.0252266177f + (x) * (0.0042111107f +   \
  (x) * (-0.000442606971f + (x) * 2.1790264e-05f)))))))
static float cr_erf_of_float(float x) {
  const float a = fabs(x) < 4.0f ? fabs(x) : 4.0f, large = 1.0f - exp(-ERF_LARGE(a));
  return x != x ? x : a < 1.0f ? x * ERF_SMALL(a * a) : copysign(large, x);
}
static T cr_erf(T x) { return sizeof(T) == sizeof(float) ? (T)cr_erf_of_float((float)x) : (T)erf(x); }
//// erfc
#define cr_erfc erfc
//// atan2
#define cr_atan2 atan2
//// hypot
#define cr_hypot hypot
//// sqrt
#define cr_sqrt sqrt
//// lgamma
#define cr_lgamma lgamma
//// copysign
#define cr_copysign copysign
//// nextafter
#define cr_nextafter nextafter
//// conj
#define cr_conj(x) (x)
//// isreal
#define cr_isreal(x) 1
//// truth
#define cr_truth(x) ((x) != (T)0)
//// where
static T cr_where(int c, T a, T b) { return c ? a : b; }
//// select
static T cr_select(int c, T a, T b) { return c ? a : b; }

//// floor
#if IS_FLOAT
#define cr_floor floor
#else
#define cr_floor(x) (x)
#endif
//// ceil
#if IS_FLOAT
#define cr_ceil ceil
#else
#define cr_ceil(x) (x)
#endif
//// trunc
#if IS_FLOAT
#define cr_trunc trunc
#else
#define cr_trunc(x) (x)
#endif
//// round
#if IS_FLOAT
#define cr_round rint
#else
#define cr_round(x) (x)
#endif
//// abs
#if IS_FLOAT
#define cr_abs fabs
#else
static T cr_abs(T x) { return x < 0 ? -x : x; }
#endif
//// round_decimals
static T cr_round_decimals(T x, long decimals) {
  const T ten = pow((T)10, (T)(decimals < 0 ? -decimals : decimals));
  return decimals < 0 ? rint(x / ten) * ten : rint(x * ten) / ten;
}

//// quotient
static T cr_quotient(T a, T b) { return a / b; }
//// reciprocal
static T cr_reciprocal(T x) { return (T)1 / x; }
//// rsqrt
static T cr_rsqrt(T x) { return (T)1 / sqrt(x); }
//// sigmoid
static T cr_sigmoid(T x) { return (T)1 / ((T)1 + exp(-x)); }
//// frac
static T cr_frac(T x) { return x - trunc(x); }
//// sign
static T cr_sign(T x) { return (T)(((T)0 < x) - (x < (T)0)); }
//// sgn
#define cr_sgn cr_sign

//// isnan
#if IS_FLOAT
#define cr_isnan(x) ((x) != (x))
#else
#define cr_isnan(x) 0
#endif
//// isinf
#if IS_FLOAT
#define cr_isinf(x) (fabs(x) == (T)INFINITY)
#else
#define cr_isinf(x) 0
#endif
//// isfinite
#if IS_FLOAT
#define cr_isfinite(x) (fabs(x) < (T)INFINITY)
#else
#define cr_isfinite(x) 1
#endif
//// signbit
#if IS_FLOAT
#define cr_signbit(x) (signbit(x) != 0)
#else
#define cr_signbit(x) ((x) < (T)0)
#endif
//// isclose
#if IS_BOOL
static int cr_isclose(T a, T b, REAL rtol, REAL atol, int equal_nan) { return a == b; }
#else
static int cr_isclose(T a, T b, REAL rtol, REAL atol, int equal_nan) {
  const int same = a == b || (equal_nan && cr_isnan(a) && cr_isnan(b));
  const REAL allowed = atol + fabs(rtol * fabs((REAL)b)), error = fabs((REAL)a - (REAL)b);
  return same || (error <= allowed && cr_isfinite(a) && cr_isfinite(b));
}
#endif
//// maximum
static T cr_maximum(T a, T b) { return (a > b || a != a) ? a : b; }
//// minimum
static T cr_minimum(T a, T b) { return (a < b || a != a) ? a : b; }
//// fmax
static T cr_fmax(T a, T b) { return (a > b || b != b) ? a : b; }
//// fmin
static T cr_fmin(T a, T b) { return (a < b || b != b) ? a : b; }
//// clamp_min
static T cr_clamp_min(T x, T low) { return cr_maximum(low, x); }
//// clamp_max
static T cr_clamp_max(T x, T high) { return cr_minimum(high, x); }
//// clamp_optional
// Limits that are absent have a flag of 0.
static T cr_clamp_optional(T x, T low, int has_low, T high, int has_high) {
  T y = x;
  if (has_low) y = cr_maximum(low, y);
  if (has_high) y = cr_minimum(high, y);
  return y;
}

//// fmod
// Division by an integer zero gives 0 here: a kernel cannot raise.
#if IS_FLOAT
#define cr_fmod fmod
#else
static T cr_fmod(T a, T b) { return b == 0 || b == -1 ? (T)0 : a % b; }
#endif
//// remainder
static T cr_remainder(T a, T b) {
  const T m = cr_fmod(a, b);
  return (m != 0 && (m < 0) != (b < 0)) ? m + b : m;
}
//// trunc_divide
#if IS_FLOAT
static T cr_trunc_divide(T a, T b) { return trunc(a / b); }
#else
static T cr_trunc_divide(T a, T b) { return b == 0 ? (T)0 : b == -1 ? -a : a / b; }
#endif
//// floor_divide
#if IS_FLOAT
static T cr_floor_divide(T a, T b) {
  if (b == 0) return a / b;
  const T m = fmod(a, b);
  T q = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) q -= (T)1;
  if (q == 0) return copysign((T)0, a / b);
  const T f = floor(q);
  return q - f > (T)0.5 ? f + (T)1 : f;
}
#else
static T cr_floor_divide(T a, T b) {
  const T q = cr_trunc_divide(a, b);
  return (b != 0 && q * b != a && (a < 0) != (b < 0)) ? q - 1 : q;
}
#endif

//// pow
#if IS_FLOAT
#define cr_pow pow
#else
static T cr_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? (T)1 : base == -1 ? ((exponent & 1) ? (T)-1 : (T)1) : (T)0;
  T result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}
#endif
//// pow_scalar
#if IS_FLOAT
static T cr_pow_scalar(T x, T exponent) {
  if (exponent == (T)2) return x * x;
  if (exponent == (T)3) return x * x * x;
  if (exponent == (T)0.5) return sqrt(x + (T)0);
  if (exponent == (T)-0.5) return (T)1 / sqrt(x);
  return pow(x, exponent);
}
#else
#define cr_pow_scalar cr_pow
#endif

//// shift_left
static T cr_shift_left(T a, T b) { return (b < 0 || b >= BITS) ? (T)0 : (T)((UNSIGNED_T)a << b); }
//// shift_right
static T cr_shift_right(T a, T b) { return a >> ((b < 0 || b >= BITS) ? BITS - 1 : b); }
//// bitwise_not
#if IS_BOOL
#define cr_bitwise_not(a) (!(a))
#else
#define cr_bitwise_not(a) (~(a))
#endif
//// gcd
static T cr_gcd(T a, T b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b != 0) {
    const T r = a % b;
    a = b;
    b = r;
  }
  return a;
}
//// lcm
static T cr_lcm(T a, T b) {
  const T g = cr_gcd(a, b);
  const T m = g == 0 ? (T)0 : a / g * b;
  return m < 0 ? -m : m;
}

//// logaddexp
static T cr_logaddexp(T a, T b) {
  const T m = cr_maximum(a, b), d = log1p(exp(-fabs(a - b)));
  return (a == b && fabs(a) == (T)INFINITY) ? a : m + d;
}
//// logaddexp2
static T cr_logaddexp2(T a, T b) {
  const T m = cr_maximum(a, b), d = log1p(exp2(-fabs(a - b))) * (T)1.44269504088896340736;
  return (a == b && fabs(a) == (T)INFINITY) ? a : m + d;
}
//// xlogy
static T cr_xlogy(T x, T y) { return y != y ? y : x == (T)0 ? (T)0 : x * log(y); }
//// xlog1py
static T cr_xlog1py(T x, T y) { return y != y ? y : x == (T)0 ? (T)0 : x * log1p(y); }
//// entr
static T cr_entr(T x) { return x != x ? x : x > 0 ? -x * log(x) : x == 0 ? (T)0 : -(T)INFINITY; }
//// logit
static T cr_logit(T x, REAL eps, int has_eps) {
  const T low = has_eps ? (T)eps : -(T)INFINITY, high = has_eps ? (T)(1 - eps) : (T)INFINITY;
  const T z = x < low ? low : x > high ? high : x;
  return log(z / ((T)1 - z));
}
//// logit_backward
static T cr_logit_backward(T grad, T x, REAL eps, int has_eps) {
  if (has_eps && eps >= 0) return (x < (T)eps || x > (T)(1 - eps)) ? (T)0 : grad / (x * ((T)1 - x));
  return (x < (T)0 || x > (T)1) ? (T)NAN : grad / (fabs(x) * ((T)1 - x));  // of the numbers below 0 only -0 has a slope, that of 0
}
//// sinc
static T cr_sinc(T x) {
  const T y = x * (T)M_PI_VALUE;
  return x == (T)0 ? (T)1 : sin(y) / y;
}
//// heaviside
static T cr_heaviside(T x, T values) { return x == (T)0 ? values : (T)(x > (T)0); }
//// lerp
static T cr_lerp(T start, T end, T weight) {
  return fabs(weight) < (T)0.5 ? start + weight * (end - start) : end - (end - start) * ((T)1 - weight);
}
//// nan_to_num
#if IS_FLOAT
static T cr_nan_to_num(T x, REAL nan_value, REAL posinf, REAL neginf) {
  return x != x ? (T)nan_value : x == (T)INFINITY ? (T)posinf : x == -(T)INFINITY ? (T)neginf : x;
}
#else
#define cr_nan_to_num(x, nan_value, posinf, neginf) (x)
#endif
//// angle
static T cr_angle(T x) { return x != x ? x : x < (T)0 ? (T)M_PI_VALUE : (T)0; }
//// ldexp
static T cr_ldexp(T x, T e) {
  if (isinf(e)) return x * exp2(e);  // 0 * inf is nan
  const T limited = e > (T)5000 ? (T)5000 : e < (T)-5000 ? (T)-5000 : e;  // beyond any number is 0 or infinite
  return limited == trunc(limited) ? ldexp(x, (int)limited) : x * exp2(limited);
}

//// erfinv
// Giles' approximation refined by two Newton steps.
static T cr_erfinv(T y) {
  const T a = fabs(y);
  const T w0 = -log((1 - y) * (1 + y));
  const T w = w0 - (T)2.5, v = sqrt(w0) - (T)3;
  T p = (T)2.81022636e-08, t = (T)-0.000200214257;
  p = (T)3.43273939e-07 + p * w, t = (T)0.000100950558 + t * v;
  p = (T)-3.5233877e-06 + p * w, t = (T)0.00134934322 + t * v;
  p = (T)-4.39150654e-06 + p * w, t = (T)-0.00367342844 + t * v;
  p = (T)0.00021858087 + p * w, t = (T)0.00573950773 + t * v;
  p = (T)-0.00125372503 + p * w, t = (T)-0.0076224613 + t * v;
  p = (T)-0.00417768164 + p * w, t = (T)0.00943887047 + t * v;
  p = (T)0.246640727 + p * w, t = (T)1.00167406 + t * v;
  p = (T)1.50140941 + p * w, t = (T)2.83297682 + t * v;
  T x = (w0 < (T)5 ? p : t) * y;
  const T two_over_sqrt_pi = (T)1.12837916709551257390;
  x -= (erf(x) - y) / (two_over_sqrt_pi * exp(-x * x));
  x -= (erf(x) - y) / (two_over_sqrt_pi * exp(-x * x));
  return a < 1 ? x : a == 1 ? y * (T)INFINITY : (T)NAN;
}
//// ndtr
static T cr_ndtr(T x) { return (T)0.5 * erfc(-x * (T)0.70710678118654752440); }
//// digamma
// Recurrence up to 10, then the asymptotic series (DLMF 5.11.2); reflection for negative arguments (DLMF 5.5.4).
static T cr_digamma(T x) {
  if (x == (T)0) return copysign((T)INFINITY, -x);
  if (x < (T)0 && x == floor(x)) return (T)NAN;
  T result = (T)0;
  if (x < (T)0) {
    const T part = x - floor(x);
    result = -(T)M_PI_VALUE / tan((T)M_PI_VALUE * part);
    x = (T)1 - x;
  }
  while (x < (T)10) {
    result -= (T)1 / x;
    x += (T)1;
  }
  const T y = (T)1 / (x * x);
  const T series =
      y * ((T)(1.0 / 12) - y * ((T)(1.0 / 120) - y * ((T)(1.0 / 252) - y * ((T)(1.0 / 240) - y * ((T)(1.0 / 132) - y * (T)(691.0 / 32760))))));
  return result + log(x) - (T)0.5 / x - series;
}

//// relu
static T cr_relu(T x) { return x < (T)0 ? (T)0 : x; }
//// leaky_relu
static T cr_leaky_relu(T x, T slope) { return x > (T)0 ? x : x * slope; }
//// leaky_relu_backward
static T cr_leaky_relu_backward(T grad, T x, T slope) { return x > (T)0 ? grad : grad * slope; }
//// hardtanh
static T cr_hardtanh(T x, T low, T high) {  // the upper limit counts where they cross, NaN among the limits too
  const T raised = x < low || low != low ? low : x;
  return raised > high || high != high ? high : raised;
}
//// hardtanh_backward
static T cr_hardtanh_backward(T grad, T x, T low, T high) { return x <= low || x >= high ? (T)0 : grad; }
//// hardsigmoid
static T cr_hardsigmoid(T x) { return cr_hardtanh(x + (T)3, (T)0, (T)6) / (T)6; }
//// hardsigmoid_backward
static T cr_hardsigmoid_backward(T grad, T x) { return (x > (T)-3 && x < (T)3) ? grad / (T)6 : (T)0; }
//// hardswish
static T cr_hardswish(T x) { return x * cr_hardtanh(x + (T)3, (T)0, (T)6) / (T)6; }
//// hardswish_backward
static T cr_hardswish_backward(T grad, T x) {
  const T inner = grad * (x / (T)3 + (T)0.5);
  return x <= (T)-3 ? (T)0 : x < (T)3 ? inner : grad;
}
//// hardshrink
static T cr_hardshrink(T x, T lambd) { return (x >= -lambd && x <= lambd) ? (T)0 : x; }
//// shrink_backward
static T cr_shrink_backward(T grad, T x, T lambd) { return (x >= -lambd && x <= lambd) ? (T)0 : grad; }
//// softshrink
static T cr_softshrink(T x, T lambd) { return x > lambd ? x - lambd : x < -lambd ? x + lambd : x * (T)0; }
//// elu
static T cr_elu(T x, T alpha, T scale, T input_scale) { return x < (T)0 ? expm1(x * input_scale) * (alpha * scale) : x * scale; }
//// elu_backward
static T cr_elu_backward(T grad, T alpha, T scale, T input_scale, int is_result, T x) {
  const T from_result = grad * input_scale * (x + alpha * scale);
  const T from_self = grad * input_scale * alpha * scale * exp(x * input_scale);
  return x <= (T)0 ? (is_result ? from_result : from_self) : grad * scale;
}
//// silu
static T cr_silu(T x) { return x / ((T)1 + exp(-x)); }
//// silu_backward
static T cr_silu_backward(T grad, T x) {
  const T s = (T)1 / ((T)1 + exp(-x));
  return grad * (s * ((T)1 + x * ((T)1 - s)));
}
//// softplus
static T cr_softplus(T x, T beta, T limit) {
  const T z = x * beta;
  return z > limit ? x : log1p(exp(z)) / beta;
}
//// softplus_backward
static T cr_softplus_backward(T grad, T x, T beta, T limit) {
  const T z = x * beta;
  return z > limit ? grad : grad / ((T)1 + exp(-z));
}
//// log_sigmoid
static T cr_log_sigmoid(T x) { return cr_minimum(x, (T)0) - log1p(exp(-fabs(x))); }
//// log_sigmoid_backward
static T cr_log_sigmoid_backward(T grad, T x) { return grad / ((T)1 + exp(x)); }
//// mish
static T cr_mish(T x) { return x * cr_tanh(cr_softplus(x, (T)1, (T)20)); }
//// mish_backward
static T cr_mish_backward(T grad, T x) {
  const T s = (T)1 / ((T)1 + exp(-x)), t = cr_tanh(cr_softplus(x, (T)1, (T)20));
  return grad * (t + x * s * ((T)1 - t * t));
}
//// gelu_erf
static T cr_gelu_erf(T x) { return x * (T)0.5 * ((T)1 + cr_erf(x * (T)0.70710678118654752440)); }
//// gelu_tanh
static T cr_gelu_tanh(T x) {
  const T inner = (T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x);
  return (T)0.5 * x * ((T)1 + cr_tanh(inner));
}
//// gelu_erf_backward
static T cr_gelu_erf_backward(T grad, T x) {
  const T cdf = (T)0.5 * ((T)1 + cr_erf(x * (T)0.70710678118654752440));
  const T pdf = exp(x * x * (T)-0.5) * (T)0.39894228040143267794;
  return grad * (cdf + x * pdf);
}
//// gelu_tanh_backward
static T cr_gelu_tanh_backward(T grad, T x) {
  const T inner = (T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x), t = cr_tanh(inner);
  const T slope = (T)0.79788456080286535588 * ((T)1 + (T)(3 * 0.044715) * x * x);
  return grad * ((T)0.5 * ((T)1 + t) + (T)0.5 * x * ((T)1 - t * t) * slope);
}
