/* The device `chalk` in plain C: one table of functions and one header of the library, no C++ and nothing to link with.
 *
 * Any language that can fill a C struct with function pointers can do the same. Kernels ask the library about their call; what they
 * do not want runs on the CPU.
 */
#include <cresset/core/backend_table.h>

#include <stdlib.h>
#include <string.h>

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static int32_t device_count(void* self) {
  (void)self;
  return 1;
}

static cresset_status allocate(void* self, int32_t device, size_t nbytes, void** data) {
  (void)self, (void)device;
  *data = malloc(nbytes);
  return *data ? CRESSET_OK : CRESSET_OUT_OF_MEMORY;
}

static void deallocate(void* self, int32_t device, void* data, size_t nbytes) {
  (void)self, (void)device, (void)nbytes;
  free(data);
}

static cresset_status copy(void* self, const cresset_copy* c) {
  (void)self;
  memmove(c->target, c->source, c->nbytes);
  return CRESSET_OK;
}

static cresset_status fill_pattern(void* self, int32_t device, void* data, size_t offset, size_t count, const void* pattern,
                                   size_t pattern_size, cresset_stream stream) {
  char* to = (char*)data + offset;
  (void)self, (void)device, (void)stream;
  for (size_t i = 0; i < count; ++i) memcpy(to + i * pattern_size, pattern, pattern_size);
  return CRESSET_OK;
}

static size_t size_of(int32_t dtype) {
  switch (dtype) {
    case CRESSET_UINT8:
    case CRESSET_INT8:
    case CRESSET_BOOL: return 1;
    case CRESSET_INT16:
    case CRESSET_FLOAT16:
    case CRESSET_BFLOAT16: return 2;
    case CRESSET_INT32:
    case CRESSET_FLOAT32: return 4;
    case CRESSET_INT64:
    case CRESSET_FLOAT64:
    case CRESSET_COMPLEX64: return 8;
    case CRESSET_COMPLEX128: return 16;
    default: return 0;
  }
}

static void copy_dimension(const cresset_strided_copy* c, int32_t d, char* to, const char* from, size_t item) {
  if (d == c->ndim) {
    memcpy(to, from, item);
    return;
  }
  for (int64_t i = 0; i < c->sizes[d]; ++i)
    copy_dimension(c, d + 1, to + i * c->target_strides[d] * (int64_t)item, from + i * c->source_strides[d] * (int64_t)item, item);
}

static cresset_status copy_strided(void* self, const cresset_strided_copy* c) {
  const size_t item = size_of(c->source_dtype);
  (void)self;
  if (item == 0) return CRESSET_USE_FALLBACK;
  copy_dimension(c, 0, (char*)c->target + c->target_offset, (const char*)c->source + c->source_offset, item);
  return CRESSET_OK;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------- */

static int same_sizes(const cresset_tensor* a, const cresset_tensor* b) {
  return a->ndim == b->ndim && (a->ndim == 0 || memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof(int64_t)) == 0);
}

static int plain_float(const cresset_tensor* t) { return t->defined && t->device >= 0 && t->dtype == CRESSET_FLOAT32 && t->contiguous; }

/* The out argument with the sizes of the result: it arrives as the caller gave it, perhaps empty, strided or of another type. */
static cresset_status fit_out(const cresset_call_api* api, cresset_call* call, int32_t argument, const cresset_tensor* like,
                              cresset_tensor* out) {
  cresset_status status = api->get_tensor(call, argument, out);
  if (status != CRESSET_OK) return status;
  if (out->dtype != CRESSET_FLOAT32 || (out->numel > 0 && !same_sizes(out, like))) return CRESSET_USE_FALLBACK; /* which warns, or raises */
  if (!same_sizes(out, like)) status = api->resize(call, argument, like->ndim, like->sizes, out);
  return status != CRESSET_OK || out->contiguous ? status : CRESSET_USE_FALLBACK;
}

/* aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!), which also serves relu and relu_ */
static cresset_status relu_out(void* self, const cresset_call_api* api, cresset_call* call) {
  cresset_tensor x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
  cresset_status status = api->get_tensor(call, 0, &x);
  (void)self;
  if (status != CRESSET_OK) return status;
  if (!plain_float(&x)) return CRESSET_USE_FALLBACK;
  status = fit_out(api, call, 1, &x, &y);
  if (status != CRESSET_OK) return status;
  for (int64_t i = 0; i < x.numel; ++i) {
    const float v = ((const float*)x.data)[i];
    ((float*)y.data)[i] = v < 0 ? 0 : v; /* NaN stays */
  }
  return api->return_argument(call, 1);
}

/* aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!) */
static cresset_status add_out(void* self, const cresset_call_api* api, cresset_call* call) {
  cresset_tensor a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b}, y = {.struct_size = sizeof y};
  double alpha = 1;
  cresset_status status = api->get_tensor(call, 0, &a);
  (void)self;
  if (status == CRESSET_OK) status = api->get_tensor(call, 1, &b);
  if (status == CRESSET_OK) status = api->get_double(call, 2, &alpha);
  if (status != CRESSET_OK || !plain_float(&a) || !plain_float(&b) || !same_sizes(&a, &b)) return CRESSET_USE_FALLBACK;
  status = fit_out(api, call, 3, &a, &y);
  if (status != CRESSET_OK) return status;
  for (int64_t i = 0; i < a.numel; ++i) ((float*)y.data)[i] = ((const float*)a.data)[i] + (float)alpha * ((const float*)b.data)[i];
  return api->return_argument(call, 3);
}

/* aten::mm(Tensor self, Tensor mat2) -> Tensor: transposed matrices are read through their strides. */
static cresset_status mm(void* self, const cresset_call_api* api, cresset_call* call) {
  cresset_tensor a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b}, y = {.struct_size = sizeof y};
  cresset_status status = api->get_tensor(call, 0, &a);
  (void)self;
  if (status == CRESSET_OK) status = api->get_tensor(call, 1, &b);
  if (status != CRESSET_OK) return status;
  if (a.dtype != CRESSET_FLOAT32 || b.dtype != CRESSET_FLOAT32 || a.device < 0 || b.device < 0 || a.ndim != 2 || b.ndim != 2 ||
      a.sizes[1] != b.sizes[0])
    return CRESSET_USE_FALLBACK;
  const int64_t sizes[2] = {a.sizes[0], b.sizes[1]};
  status = api->new_result(call, 2, sizes, CRESSET_FLOAT32, &y);
  if (status != CRESSET_OK) return status;
  for (int64_t i = 0; i < sizes[0]; ++i)
    for (int64_t j = 0; j < sizes[1]; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < a.sizes[1]; ++k)
        sum += (double)((const float*)a.data)[i * a.strides[0] + k * a.strides[1]] *
               (double)((const float*)b.data)[k * b.strides[0] + j * b.strides[1]];
      ((float*)y.data)[i * sizes[1] + j] = (float)sum;
    }
  return CRESSET_OK;
}

static const cresset_kernel kernels[] = {
    {sizeof(cresset_kernel), CRESSET_BACKEND_TABLE_VERSION, "aten::relu.out", relu_out},
    {sizeof(cresset_kernel), CRESSET_BACKEND_TABLE_VERSION, "aten::add.out", add_out},
    {sizeof(cresset_kernel), CRESSET_BACKEND_TABLE_VERSION, "aten::mm", mm},
};

/* ---- the table ----------------------------------------------------------------------------------------------------- */

static const cresset_backend table = {
    .struct_size = sizeof(cresset_backend),
    .table_version = CRESSET_BACKEND_TABLE_VERSION,
    .needs_version = CRESSET_BACKEND_TABLE_OLDEST,
    .name = "chalk",
    .description = "a device in plain C",
    .device_count = device_count,
    .allocate = allocate,
    .deallocate = deallocate,
    .copy = copy,
    .fill_pattern = fill_pattern,
    .copy_strided = copy_strided,
    .kernels = kernels,
    .kernel_count = sizeof kernels / sizeof *kernels,
};

CRESSET_PUBLIC const cresset_backend* cresset_backend_entry(void) { return &table; }
