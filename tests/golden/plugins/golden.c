/* A plug-in in C that a table of any version can build: -I<version> chooses the header. It has one kernel of its own,
 * aten::neg for contiguous float32, and leaves every other case to the CPU. DEVICE_NAME is its name. */
#include "backend_table.h"

#include <stdlib.h>
#include <string.h>

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
  memcpy(c->target, c->source, c->nbytes);
  return CRESSET_OK;
}
static const char* error_text(void* self, cresset_status status) {
  (void)self;
  return status == 101 ? "the golden device does not negate seven" : "";
}

static cresset_status neg(void* self, const cresset_call_api* api, cresset_call* call) {
  cresset_tensor x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
  cresset_status status = api->get_tensor(call, 0, &x);
  (void)self;
  if (status != CRESSET_OK) return status;
  if (x.dtype != CRESSET_FLOAT32 || !x.contiguous) return CRESSET_USE_FALLBACK;
  status = api->new_result(call, x.ndim, x.sizes, x.dtype, &y);
  if (status != CRESSET_OK) return status;
  for (int64_t i = 0; i < x.numel; ++i) {
    if (((const float*)x.data)[i] == 7.0f) return 101;
    ((float*)y.data)[i] = -((const float*)x.data)[i];
  }
  return CRESSET_OK;
}

static const cresset_kernel kernels[] = {{sizeof(cresset_kernel), CRESSET_BACKEND_TABLE_VERSION, "aten::neg", neg}};

#if CRESSET_BACKEND_TABLE_VERSION >= 2
static int cache_emptied = 0;
static void empty_cache(void* self) {
  (void)self;
  ++cache_emptied;
}
CRESSET_PUBLIC int golden_cache_emptied(void) { return cache_emptied; }
#endif

#if CRESSET_BACKEND_TABLE_VERSION >= 3
static uint64_t peak = 96;
static cresset_status memory_stats(void* self, int32_t device, cresset_memory_stats* out) {
  (void)self, (void)device;
  out->reserved_bytes = 64;
  out->peak_reserved_bytes = peak;
  return CRESSET_OK;
}
static void reset_peak_memory_stats(void* self, int32_t device) {
  (void)self, (void)device;
  peak = 64;
}
#endif

#if CRESSET_BACKEND_TABLE_VERSION >= 4
static int fills = 0;
static cresset_status fill_pattern(void* self, int32_t device, void* data, size_t offset, size_t count, const void* pattern, size_t pattern_size,
                                   cresset_stream stream) {
  (void)self, (void)device, (void)stream;
  for (size_t i = 0; i < count; ++i) memcpy((char*)data + offset + i * pattern_size, pattern, pattern_size);
  ++fills;
  return CRESSET_OK;
}
CRESSET_PUBLIC int golden_fills(void) { return fills; }
#endif

static const cresset_backend table = {
    .struct_size = sizeof(cresset_backend),
    .table_version =
#ifdef TABLE_VERSION
        TABLE_VERSION,
#else
        CRESSET_BACKEND_TABLE_VERSION,
#endif
    .name = DEVICE_NAME,
    .description = "a plug-in that was built long ago",
    .device_count = device_count,
    .allocate = allocate,
    .deallocate = deallocate,
    .copy = copy,
    .error_text = error_text,
    .kernels = kernels,
    .kernel_count = 1,
#if CRESSET_BACKEND_TABLE_VERSION >= 2
    .empty_cache = empty_cache,
#endif
#if CRESSET_BACKEND_TABLE_VERSION >= 3
    .memory_stats = memory_stats,
    .reset_peak_memory_stats = reset_peak_memory_stats,
#endif
#if CRESSET_BACKEND_TABLE_VERSION >= 4
    .fill_pattern = fill_pattern,
#endif
#if CRESSET_BACKEND_TABLE_VERSION >= 5
    .dlpack_type = 17, /* kDLMAIA */
#endif
};

CRESSET_PUBLIC const cresset_backend* cresset_backend_entry(void) { return &table; }
