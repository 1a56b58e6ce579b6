// Backends and process groups: who runs collectives. A vendor derives from Backend.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <cresset/distributed/store.h>
#include <cresset/distributed/work.h>

namespace cresset::distributed {

/// Every collective once: name, parameters, arguments.
#define CRESSET_COLLECTIVES(_)                                                                                                        \
  _(broadcast, (std::vector<Tensor> & tensors, const BroadcastOptions& opts), (tensors, opts))                                        \
  _(allreduce, (std::vector<Tensor> & tensors, const AllreduceOptions& opts), (tensors, opts))                                        \
  _(allreduce_coalesced, (std::vector<Tensor> & tensors, const AllreduceCoalescedOptions& opts), (tensors, opts))                     \
  _(reduce, (std::vector<Tensor> & tensors, const ReduceOptions& opts), (tensors, opts))                                              \
  _(allgather, (std::vector<std::vector<Tensor>> & outputs, std::vector<Tensor> & inputs, const AllgatherOptions& opts),              \
    (outputs, inputs, opts))                                                                                                          \
  _(_allgather_base, (Tensor & output, Tensor & input, const AllgatherOptions& opts), (output, input, opts))                          \
  _(allgather_coalesced, (std::vector<std::vector<Tensor>> & outputs, std::vector<Tensor> & inputs, const AllgatherOptions& opts),    \
    (outputs, inputs, opts))                                                                                                          \
  _(allgather_into_tensor_coalesced, (std::vector<Tensor> & outputs, std::vector<Tensor> & inputs, const AllgatherOptions& opts),     \
    (outputs, inputs, opts))                                                                                                          \
  _(gather, (std::vector<std::vector<Tensor>> & outputs, std::vector<Tensor> & inputs, const GatherOptions& opts),                    \
    (outputs, inputs, opts))                                                                                                          \
  _(scatter, (std::vector<Tensor> & outputs, std::vector<std::vector<Tensor>> & inputs, const ScatterOptions& opts),                  \
    (outputs, inputs, opts))                                                                                                          \
  _(reduce_scatter, (std::vector<Tensor> & outputs, std::vector<std::vector<Tensor>> & inputs, const ReduceScatterOptions& opts),     \
    (outputs, inputs, opts))                                                                                                          \
  _(_reduce_scatter_base, (Tensor & output, Tensor & input, const ReduceScatterOptions& opts), (output, input, opts))                 \
  _(reduce_scatter_tensor_coalesced, (std::vector<Tensor> & outputs, std::vector<Tensor> & inputs, const ReduceScatterOptions& opts), \
    (outputs, inputs, opts))                                                                                                          \
  _(alltoall_base,                                                                                                                    \
    (Tensor & output, Tensor & input, std::vector<int64_t> & output_split, std::vector<int64_t> & input_split,                        \
     const AllToAllOptions& opts),                                                                                                    \
    (output, input, output_split, input_split, opts))                                                                                 \
  _(alltoall, (std::vector<Tensor> & outputs, std::vector<Tensor> & inputs, const AllToAllOptions& opts), (outputs, inputs, opts))    \
  _(send, (std::vector<Tensor> & tensors, int destination, int tag), (tensors, destination, tag))                                     \
  _(recv, (std::vector<Tensor> & tensors, int source, int tag), (tensors, source, tag))                                               \
  _(recvAnysource, (std::vector<Tensor> & tensors, int tag), (tensors, tag))                                                          \
  _(barrier, (const BarrierOptions& opts), (opts))

/// Ranks that communicate, and all that they can do together. What a class does not override raises RuntimeError with its name.
class CRESSET_API Collectives : public intrusive_ptr_target {
 public:
  Collectives(int rank, int size) : rank_(rank), size_(size) {}
  ~Collectives() override;
  virtual int getRank() const { return rank_; }
  virtual int getSize() const { return size_; }

#define CRESSET_DECLARE(name, parameters, arguments) virtual intrusive_ptr<Work> name parameters;
  CRESSET_COLLECTIVES(CRESSET_DECLARE)
#undef CRESSET_DECLARE
  /// A barrier that names the ranks that are missing after the timeout.
  virtual void monitoredBarrier(const BarrierOptions& opts, bool wait_all_ranks = false);
  virtual void setSequenceNumberForGroup();
  virtual uint64_t getSequenceNumberForGroup();
  virtual void startCoalescing();
  virtual intrusive_ptr<Work> endCoalescing();
  virtual void setTimeout(std::chrono::milliseconds timeout);
  /// Ends the connections; calls under way fail.
  virtual void shutdown();
  virtual void abort();

 protected:
  virtual std::string title() const = 0;
  const int rank_, size_;
};

/// One way to communicate, for the devices it is registered for.
class CRESSET_API Backend : public Collectives {
 public:
  struct CRESSET_API Options : intrusive_ptr_target {
    explicit Options(std::string backend, std::chrono::milliseconds timeout = kBackendDefaultTimeout)
        : timeout(timeout), backend(std::move(backend)) {}
    ~Options() override;
    std::chrono::milliseconds timeout;
    const std::string backend;
    std::string group_name;
    std::vector<uint64_t> global_ranks_in_group;
  };
  using Collectives::Collectives;
  ~Backend() override;
  virtual const std::string getBackendName() const;
  virtual intrusive_ptr<Options> getBackendOptions();

 protected:
  std::string title() const override { return "Backend " + getBackendName(); }
};

/// The ranks of a group, with a backend for each kind of device. It can be derived from too.
class CRESSET_API ProcessGroup : public Collectives {
 public:
  enum BackendType : uint8_t { UNDEFINED = 0, GLOO = 1, NCCL = 2, UCC = 3, MPI = 4, XCCL = 5, CUSTOM = 6 };
  ProcessGroup(int rank, int size) : Collectives(rank, size) {}
  ProcessGroup(intrusive_ptr<Store> store, int rank, int size) : Collectives(rank, size), store_(std::move(store)) {}
  ~ProcessGroup() override;

#define CRESSET_DECLARE(name, parameters, arguments) intrusive_ptr<Work> name parameters override;
  CRESSET_COLLECTIVES(CRESSET_DECLARE)
#undef CRESSET_DECLARE
  void monitoredBarrier(const BarrierOptions& opts, bool wait_all_ranks = false) override;
  void setSequenceNumberForGroup() override;
  uint64_t getSequenceNumberForGroup() override;
  void startCoalescing() override;
  intrusive_ptr<Work> endCoalescing() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  void shutdown() override;
  void abort() override;

  /// The name of the default backend.
  virtual const std::string getBackendName() const;
  void setBackend(DeviceType device, BackendType type, const intrusive_ptr<Backend>& backend);
  /// The backend of a device. A device without one is served by that of the CPU, with copies in this host's memory. RuntimeError where the
  /// CPU has none either, and for meta.
  intrusive_ptr<Backend> getBackend(DeviceType device) const;
  void setDefaultBackend(BackendType type) { default_type_ = type; }
  intrusive_ptr<Backend> getDefaultBackend() const;
  std::vector<DeviceType> getDeviceTypes() const;
  const intrusive_ptr<Store>& getStore() const { return store_; }
  virtual std::string getGroupName() const { return name_; }
  virtual void setGroupName(const std::string& name) { name_ = name; }
  virtual std::string getGroupDesc() const { return description_; }
  virtual void setGroupDesc(const std::string& text) { description_ = text; }

 protected:
  std::string title() const override { return "ProcessGroup " + getBackendName(); }

 private:
  struct Entry {
    BackendType type;
    intrusive_ptr<Backend> backend;
  };
  const intrusive_ptr<Store> store_;
  std::string name_, description_;
  std::map<DeviceType, Entry> backends_;
  mutable std::mutex mutex_;
  mutable std::map<DeviceType, intrusive_ptr<Backend>> staged_;
  BackendType default_type_ = UNDEFINED;
};

}  // namespace cresset::distributed
