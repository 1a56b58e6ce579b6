/* A device backend as one table of C functions. C and C++ programs can fill it; cresset/backend.h fills it from a class.
 *
 * Rules that keep built plug-ins working:
 *  - Entries are only ever appended, each under the version that added it; none is removed or changes its meaning.
 *  - struct_size says how much of a struct its maker knew; what lies behind it counts as zero.
 *  - A null function means that the backend does not have this part. Only the parts marked REQUIRED must be there.
 *  - Every function may be called from any thread. Returning something other than CRESSET_OK raises in the caller.
 *
 * A plug-in library exports `const cresset_backend* cresset_backend_entry(void)`.
 */
#ifndef CRESSET_BACKEND_TABLE_H
#define CRESSET_BACKEND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CRESSET_BACKEND_TABLE_VERSION 6
#define CRESSET_BACKEND_TABLE_OLDEST 1 /* the oldest version of a table that this header's library still runs */
#define CRESSET_PUBLIC __attribute__((visibility("default")))

typedef int32_t cresset_status;
enum {
  CRESSET_USE_FALLBACK = -1, /* from a kernel: not this case; run the operator on the CPU */
  CRESSET_OK = 0,
  CRESSET_OUT_OF_MEMORY = 1,
  CRESSET_INVALID_ARGUMENT = 2,
  CRESSET_NOT_SUPPORTED = 3,
  CRESSET_DEVICE_LOST = 4 /* codes from 100 on are the backend's own */
};

/* Flags of a backend. */
enum {
  /* The host can read and write the device's memory at the same address. */
  CRESSET_HOST_ACCESSIBLE = 1u << 0,
  /* A data pointer is a handle: nothing may be added to it. Kernels then get only whole, dense tensors; views are gathered
   * in front of a kernel and written back behind it. */
  CRESSET_OPAQUE_MEMORY = 1u << 1
};

/* Element types, by number. */
enum {
  CRESSET_UINT8 = 0,
  CRESSET_INT8 = 1,
  CRESSET_INT16 = 2,
  CRESSET_INT32 = 3,
  CRESSET_INT64 = 4,
  CRESSET_FLOAT16 = 5,
  CRESSET_FLOAT32 = 6,
  CRESSET_FLOAT64 = 7,
  CRESSET_COMPLEX64 = 9,
  CRESSET_COMPLEX128 = 10,
  CRESSET_BOOL = 11,
  CRESSET_BFLOAT16 = 15
};

/* A queue of a device. 0 is its default queue. */
typedef uint64_t cresset_stream;

/* One transfer of contiguous bytes. A device of -1 is the host. The offsets are for opaque memory; elsewhere they are 0. */
typedef struct cresset_copy {
  size_t struct_size;
  void* target;
  const void* source;
  size_t nbytes;
  size_t target_offset;
  size_t source_offset;
  int32_t target_device;
  int32_t source_device;
  cresset_stream stream;
  int32_t non_blocking; /* 0: the bytes have arrived when the call returns */
} cresset_copy;

/* Elements of a tensor to another of the same sizes on the same device, in the order of the stream: nobody waits. Strides count elements
 * of their own type; the offsets (bytes) are for opaque memory, elsewhere they are 0. The two do not overlap. What the struct points to is
 * gone when the call returns. */
typedef struct cresset_strided_copy {
  size_t struct_size;
  void* target;
  const void* source;
  size_t target_offset;
  size_t source_offset;
  const int64_t* sizes;
  const int64_t* target_strides;
  const int64_t* source_strides;
  int32_t ndim;
  int32_t target_dtype;
  int32_t source_dtype;
  int32_t device;
  cresset_stream stream;
} cresset_strided_copy;

typedef struct cresset_device_properties {
  size_t struct_size;
  char name[128];
  uint64_t total_memory;
  uint64_t free_memory;
  int32_t major;
  int32_t minor;
  int32_t compute_units;
} cresset_device_properties;

/* ---- kernels in C ------------------------------------------------------------------------------------------------ */

typedef struct cresset_call cresset_call; /* one call of an operator */

typedef struct cresset_tensor {
  size_t struct_size;
  void* data; /* the first element; with opaque memory the handle */
  const int64_t* sizes;
  const int64_t* strides;
  int64_t numel;
  int32_t ndim;
  int32_t dtype;
  int32_t device; /* index of the device, -1 for the host */
  int32_t defined;
  int32_t contiguous;
} cresset_tensor;

enum {
  CRESSET_KIND_NONE = 0,
  CRESSET_KIND_TENSOR = 1,
  CRESSET_KIND_DOUBLE = 2,
  CRESSET_KIND_INT = 4,
  CRESSET_KIND_BOOL = 5,
  CRESSET_KIND_STRING = 6,
  CRESSET_KIND_LIST = 7,
  CRESSET_KIND_OTHER = 255
};

/* What a kernel can ask about its call. Arguments are numbered as in the operator's schema, defaults filled in. */
typedef struct cresset_call_api {
  size_t struct_size;
  uint32_t version;
  int32_t (*argument_count)(const cresset_call* call);
  int32_t (*argument_kind)(const cresset_call* call, int32_t argument);
  cresset_status (*get_tensor)(const cresset_call* call, int32_t argument, cresset_tensor* out);
  cresset_status (*get_int)(const cresset_call* call, int32_t argument, int64_t* out);
  cresset_status (*get_double)(const cresset_call* call, int32_t argument, double* out);
  cresset_status (*list_size)(const cresset_call* call, int32_t argument, int64_t* out);
  cresset_status (*list_tensor)(const cresset_call* call, int32_t argument, int64_t position, cresset_tensor* out);
  cresset_status (*list_int)(const cresset_call* call, int32_t argument, int64_t position, int64_t* out);
  /* The next result: a new contiguous tensor on the device of the call. */
  cresset_status (*new_result)(cresset_call* call, int32_t ndim, const int64_t* sizes, int32_t dtype, cresset_tensor* out);
  /* The next result is this argument (for in-place and out operators). */
  cresset_status (*return_argument)(cresset_call* call, int32_t argument);
  /* Gives a tensor argument (out) other sizes; it is contiguous afterwards. */
  cresset_status (*resize)(cresset_call* call, int32_t argument, int32_t ndim, const int64_t* sizes, cresset_tensor* out);
  cresset_stream (*stream)(const cresset_call* call); /* the current queue of the device of the call */
} cresset_call_api;

typedef struct cresset_kernel {
  size_t struct_size;
  uint32_t version; /* CRESSET_BACKEND_TABLE_VERSION of the maker */
  const char* op;   /* "aten::add.Tensor" */
  cresset_status (*run)(void* self, const cresset_call_api* api, cresset_call* call);
} cresset_kernel;

/* Operators and types for automatic mixed precision: names without overload, "aten::mm", the lists end with null. */
typedef struct cresset_autocast {
  size_t struct_size;
  int32_t default_dtype;
  const int32_t* supported_dtypes;
  size_t supported_dtype_count;
  const char* const* lower_precision; /* null: the lists of the CPU */
  const char* const* float32;
  const char* const* widest;
} cresset_autocast;

/* What a backend's own allocator holds from the driver: in use, waiting for queues, or free. */
typedef struct cresset_memory_stats {
  size_t struct_size;
  uint64_t reserved_bytes;
  uint64_t peak_reserved_bytes;
} cresset_memory_stats;

enum { CRESSET_EVENT_TIMING = 1, CRESSET_EVENT_INTERPROCESS = 2 };
#define CRESSET_EVENT_HANDLE_BYTES 64
enum { CRESSET_STEP_BEGIN = 0, CRESSET_STEP_END = 1 };
/* Which calls are refused while a graph is being recorded; a backend may be stricter. */
enum { CRESSET_CAPTURE_DEFAULT = 0, CRESSET_CAPTURE_GLOBAL = 1, CRESSET_CAPTURE_THREAD = 2, CRESSET_CAPTURE_RELAXED = 3 };

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct cresset_backend {
  /* version 1 */
  size_t struct_size;     /* REQUIRED sizeof(cresset_backend) */
  uint32_t table_version; /* REQUIRED CRESSET_BACKEND_TABLE_VERSION */
  uint32_t needs_version; /* the lowest table version of the library this plug-in can run with; 0: table_version */
  const char* name;       /* REQUIRED the device's name, "mychip" */
  const char* description;
  const char* file_tag; /* how files name this device; null: the name */
  void* self;           /* handed to every function */
  uint32_t flags;
  int32_t slot; /* 1 to 16: the dispatch key PrivateUse<slot>; 0: any that is free */

  int32_t (*device_count)(void* self);                                                /* REQUIRED */
  cresset_status (*allocate)(void* self, int32_t device, size_t nbytes, void** data); /* REQUIRED; nbytes > 0 */
  void (*deallocate)(void* self, int32_t device, void* data, size_t nbytes);          /* REQUIRED */
  cresset_status (*copy)(void* self, const cresset_copy* copy);                       /* REQUIRED to, from, within */
  const char* (*error_text)(void* self, cresset_status status);                       /* of this thread's last failure */
  cresset_status (*set_device)(void* self, int32_t device);                           /* told of the thread's device */
  cresset_status (*synchronize)(void* self, int32_t device);                          /* waits for all queues */
  cresset_status (*fill)(void* self, int32_t device, void* data, size_t nbytes, uint8_t value, cresset_stream stream);
  cresset_status (*get_properties)(void* self, int32_t device, cresset_device_properties* out);

  cresset_status (*stream_create)(void* self, int32_t device, int32_t priority, cresset_stream* out);
  cresset_status (*stream_query)(void* self, int32_t device, cresset_stream stream, int32_t* done);
  cresset_status (*stream_synchronize)(void* self, int32_t device, cresset_stream stream);

  cresset_status (*event_create)(void* self, int32_t device, int32_t flags, void** out);
  void (*event_destroy)(void* self, int32_t device, void* event);
  cresset_status (*event_record)(void* self, int32_t device, void* event, cresset_stream stream);
  cresset_status (*event_wait)(void* self, int32_t device, void* event, cresset_stream stream); /* the stream waits */
  cresset_status (*event_query)(void* self, void* event, int32_t* done);
  cresset_status (*event_synchronize)(void* self, void* event);
  cresset_status (*event_elapsed)(void* self, void* begin, void* end, double* milliseconds);

  cresset_status (*pinned_allocate)(void* self, size_t nbytes, void** data);
  void (*pinned_deallocate)(void* self, void* data, size_t nbytes);

  cresset_status (*generator_seed)(void* self, int32_t device, uint64_t seed); /* told of new seeds of the default generator */

  const cresset_kernel* kernels; /* each of kernels[0].struct_size bytes */
  size_t kernel_count;

  /* version 2 */
  const cresset_autocast* autocast;
  cresset_status (*optimizer_step)(void* self, int32_t device, int32_t phase); /* around every step over this device's parameters */
  void (*profile_push)(void* self, const char* name);                          /* a named range begins on this thread */
  void (*profile_pop)(void* self);
  void (*empty_cache)(void* self); /* gives idle memory back */

  /* version 3 */
  cresset_status (*memory_stats)(void* self, int32_t device, cresset_memory_stats* out);
  void (*reset_peak_memory_stats)(void* self, int32_t device);

  /* version 4: without these, fills and copies inside a device are made of `copy` where that can be, and go through the host otherwise.
   * The copies may give CRESSET_USE_FALLBACK for what they do not do. */
  /* `count` elements of `pattern_size` bytes (1, 2, 4, 8 or 16) from `offset` bytes behind `data` (0 but for opaque memory) become the
   * pattern. */
  cresset_status (*fill_pattern)(void* self, int32_t device, void* data, size_t offset, size_t count, const void* pattern,
                                 size_t pattern_size, cresset_stream stream);
  cresset_status (*copy_strided)(void* self, const cresset_strided_copy* copy); /* one type, any strides */
  cresset_status (*copy_cast)(void* self, const cresset_strided_copy* copy);    /* between types, any strides */

  /* version 5 */
  /* Graphs. What is put into the stream between begin and end is recorded instead of done; so is what is put into a stream that waits for
   * an event recorded there. Memory that recorded work names stays allocated until the graph is destroyed, which may be asked for while
   * replays are in a queue. graph_end without success ends the recording all the same. */
  cresset_status (*graph_begin)(void* self, int32_t device, cresset_stream stream, int32_t mode);
  cresset_status (*graph_end)(void* self, int32_t device, cresset_stream stream, void** graph);
  cresset_status (*graph_replay)(void* self, int32_t device, void* graph, cresset_stream stream); /* all of it, behind the stream's work */
  void (*graph_destroy)(void* self, int32_t device, void* graph);
  cresset_status (*stream_is_capturing)(void* self, int32_t device, cresset_stream stream, int32_t* capturing);
  cresset_status (*graph_dump)(void* self, void* graph, const char* path); /* writes a picture for Graphviz */

  /* Smaller numbers go first; both ends are valid. Without it: 0 and -1. */
  cresset_status (*stream_priorities)(void* self, int32_t device, int32_t* lowest, int32_t* highest);
  cresset_status (*stream_to_native)(void* self, int32_t device, cresset_stream stream, void** handle); /* the driver's queue */
  /* A queue that somebody else made and keeps alive. */
  cresset_status (*stream_from_native)(void* self, int32_t device, void* handle, cresset_stream* out);
  cresset_status (*peer_access)(void* self, int32_t device, int32_t peer, int32_t* possible); /* reaches the peer's memory directly */
  int32_t dlpack_type; /* the DLDeviceType that stands for this memory; 0: an extension device */

  /* version 6 */
  /* Events that other processes can wait for; they are created with CRESSET_EVENT_INTERPROCESS, and have no times. The handle leads to the
   * event from another process as long as the event lives; what is imported there is used and destroyed as an event of its own. */
  cresset_status (*event_export)(void* self, int32_t device, void* event, uint8_t handle[CRESSET_EVENT_HANDLE_BYTES]);
  cresset_status (*event_import)(void* self, int32_t device, const uint8_t handle[CRESSET_EVENT_HANDLE_BYTES], void** out);
} cresset_backend;

/* What a plug-in exports, and what the loader looks for. */
typedef const cresset_backend* (*cresset_backend_entry_function)(void);
#define CRESSET_BACKEND_ENTRY_NAME "cresset_backend_entry"

/* Registers a backend; the functions must stay loaded, the table itself is copied. Gives CRESSET_OK and the number of its
 * device type, or CRESSET_INVALID_ARGUMENT and one sentence in `error`. The same table twice is one registration. */
CRESSET_PUBLIC cresset_status cresset_backend_register(const cresset_backend* table, int32_t* device_type, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
