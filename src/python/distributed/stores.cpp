// Stores in Python, and stores written in Python.
#include <cresset/distributed/store.h>

#include "python/distributed/casters.h"

namespace cresset::python {

namespace {

using namespace cresset::distributed;
using Keys = std::vector<std::string>;

py::bytes to_bytes(const Store::Bytes& b) { return py::bytes(reinterpret_cast<const char*>(b.data()), b.size()); }
std::vector<py::bytes> to_bytes(const std::vector<Store::Bytes>& list) {
  std::vector<py::bytes> out;
  for (const auto& b : list) out.push_back(to_bytes(b));
  return out;
}
Store::Bytes from_text(const std::string& s) { return Store::Bytes(s.begin(), s.end()); }

/// f() without the interpreter lock; its bytes as a Python object.
template <class F>
auto bytes_of(F f) {
  return to_bytes(without_lock(true, f));
}

/// A store whose methods a Python class overrides.
class PythonStore : public Store {
 public:
  using Store::set;
  using Store::Store;
  void set(const std::string& key, const Bytes& value) override {
    const py::gil_scoped_acquire lock;
    call("set", key, to_bytes(value));
  }
  Bytes get(const std::string& key) override {
    const py::gil_scoped_acquire lock;
    return from_text(call("get", key).cast<std::string>());
  }
  int64_t add(const std::string& key, int64_t value) override {
    const py::gil_scoped_acquire lock;
    return call("add", key, value).cast<int64_t>();
  }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    const py::gil_scoped_acquire lock;
    return from_text(call("compare_set", key, to_bytes(expected), to_bytes(desired)).cast<std::string>());
  }
  bool deleteKey(const std::string& key) override {
    const py::gil_scoped_acquire lock;
    return call("delete_key", key).cast<bool>();
  }
  bool check(const Keys& keys) override {
    const py::gil_scoped_acquire lock;
    return call("check", keys).cast<bool>();
  }
  int64_t getNumKeys() override {
    const py::gil_scoped_acquire lock;
    return call("num_keys").cast<int64_t>();
  }
  void wait(const Keys& keys) override {
    const py::gil_scoped_acquire lock;
    call("wait", keys);
  }
  void wait(const Keys& keys, const Timeout& timeout) override {
    const py::gil_scoped_acquire lock;
    call("wait", keys, timeout);
  }
  bool hasExtendedApi() const override {
    const py::gil_scoped_acquire lock;
    const py::function f = py::get_override(this, "has_extended_api");
    return f && f().cast<bool>();
  }
  void append(const std::string& key, const Bytes& value) override {
    const py::gil_scoped_acquire lock;
    if (!py::get_override(this, "append")) return Store::append(key, value);
    call("append", key, to_bytes(value));
  }
  std::vector<Bytes> multiGet(const Keys& keys) override {
    const py::gil_scoped_acquire lock;
    if (!py::get_override(this, "multi_get")) return Store::multiGet(keys);
    std::vector<Bytes> out;
    for (const auto& s : call("multi_get", keys).cast<std::vector<std::string>>()) out.push_back(from_text(s));
    return out;
  }
  void multiSet(const Keys& keys, const std::vector<Bytes>& values) override {
    const py::gil_scoped_acquire lock;
    if (!py::get_override(this, "multi_set")) return Store::multiSet(keys, values);
    call("multi_set", keys, to_bytes(values));
  }
  intrusive_ptr<Store> clone() override {
    const py::gil_scoped_acquire lock;
    return call("clone").cast<intrusive_ptr<Store>>();
  }

 private:
  template <class... Args>
  py::object call(const char* name, const Args&... args) const {
    const py::function f = py::get_override(this, name);
    if (!f) CRESSET_THROW(NotImplementedError, "Not implemented. A class derived from Store must define ", name, "; this one does not.");
    return f(args...);
  }
};

void store_barrier(Store& store, const std::string& key, int64_t world_size, std::optional<Store::Timeout> timeout) {
  CRESSET_CHECK_VALUE(world_size > 0, "barrier: world_size must be positive; it is ", world_size, ".");
  const int64_t came = store.add(key + "/came", 1);
  const std::string all_there = key + "/all/" + std::to_string((came - 1) / world_size);
  if (came % world_size == 0) store.set(all_there, from_text("1"));
  if (timeout)
    store.wait({all_there}, *timeout);
  else
    store.wait({all_there});
}

void bind_store(py::module_& module) {
  py::class_<Store, PythonStore, Held<Store>>(module, "Store", "Keys with values that processes share.")
      .def(py::init<>())
      .def(
          "set", [](Store& s, const std::string& key, const std::string& value) { s.set(key, value); }, Unlocked(),
          "Sets the key to a str or bytes.")
      .def(
          "get", [](Store& s, const std::string& key) { return bytes_of([&] { return s.get(key); }); },
          "The bytes of the key; waits for it.")
      .def("add", &Store::add, Unlocked(), "The counter of the key after an int was added.")
      .def(
          "compare_set",
          [](Store& s, const std::string& key, const std::string& expected, const std::string& desired) {
            return bytes_of([&] { return s.compareSet(key, from_text(expected), from_text(desired)); });
          },
          "Sets the key to the third where it has the second, or is not there and that is empty. What it has then.")
      .def("delete_key", &Store::deleteKey, Unlocked(), "Was the key there?")
      .def("check", &Store::check, Unlocked(), "Are all the keys there?")
      .def("num_keys", &Store::getNumKeys, Unlocked(), "How many keys there are, with those of the store itself.")
      .def("set_timeout", &Store::setTimeout, Unlocked(), "Sets how long get and wait wait, a timedelta.")
      .def("wait", py::overload_cast<const Keys&>(&Store::wait), Unlocked(), "Waits for the keys.")
      .def("wait", py::overload_cast<const Keys&, const Store::Timeout&>(&Store::wait), Unlocked(), "Waits so long, a timedelta.")
      .def("barrier", &store_barrier, Unlocked(), py::arg("key"), py::arg("world_size"), py::arg("timeout") = py::none(),
           "Waits until so many processes have called it with this key; again for the next round of them.")
      .def_property_readonly(
          "timeout", [](const Store& s) { return s.getTimeout(); }, "How long get and wait wait.")
      .def(
          "append", [](Store& s, const std::string& key, const std::string& value) { s.append(key, from_text(value)); }, Unlocked())
      .def("multi_get", [](Store& s, const Keys& keys) { return bytes_of([&] { return s.multiGet(keys); }); })
      .def(
          "multi_set",
          [](Store& s, const Keys& keys, const Keys& values) {
            std::vector<Store::Bytes> list;
            for (const auto& v : values) list.push_back(from_text(v));
            s.multiSet(keys, list);
          },
          Unlocked())
      .def(
          "queue_push", [](Store& s, const std::string& key, const std::string& value) { s.queuePush(key, from_text(value)); }, Unlocked())
      .def(
          "queue_pop", [](Store& s, const std::string& key, bool block) { return bytes_of([&] { return s.queuePop(key, block); }); },
          py::arg("key"), py::arg("block") = true)
      .def("queue_len", &Store::queueLen, Unlocked())
      .def("list_keys", &Store::listKeys, Unlocked())
      .def("has_extended_api", &Store::hasExtendedApi, "Are there append, multi_get and multi_set?")
      .def("clone", &Store::clone, Unlocked(), "Another object for the same keys.");
}

/// The Python object that a store was made as: of one in memory Python does not know the class.
py::object own_object(const intrusive_ptr<Store>& store) {
  if (auto* memory = dynamic_cast<HashStore*>(store.get())) {
    intrusive_ops::incref(memory);
    return py::cast(intrusive_ptr<HashStore>::reclaim(memory));
  }
  return py::cast(store);
}

intrusive_ptr<TCPStore> make_tcp_store(const std::string& host, uint16_t port, std::optional<int64_t> world_size, bool is_master,
                                       std::chrono::milliseconds timeout, bool wait_for_workers, bool multi_tenant,
                                       std::optional<int> listen_fd, bool use_libuv) {
  TCPStoreOptions options;
  options.useLibUV = use_libuv;
  options.port = port;
  options.isServer = is_master;
  options.numWorkers = world_size;
  options.waitWorkers = wait_for_workers;
  options.timeout = timeout;
  options.multiTenant = multi_tenant;
  options.masterListenFd = listen_fd;
  return make_intrusive<TCPStore>(host, options);
}

/// What groups do with a store.
void use_as_cpp_does(Store& store) {
  const auto expect = [](bool good, const char* what) { CRESSET_CHECK(good, "the store's ", what, " gave another value."); };
  const auto bytes = [](const char* text) { return from_text(text); };
  store.set("key", "value");
  expect(store.get_to_str("key") == "value", "get");
  expect(store.add("count", 3) == 3 && store.add("count", 4) == 7, "add");
  expect(store.get_to_str("count") == "7", "get after add");
  store.set("compared", "old");
  expect(store.compareSet("compared", bytes("other"), bytes("new")) == bytes("old"), "compare_set with another value");
  expect(store.compareSet("compared", bytes("old"), bytes("new")) == bytes("new"), "compare_set");
  expect(store.get_to_str("compared") == "new", "get after compare_set");
}

}  // namespace

void init_stores(py::module_& module) {
  bind_store(module);
  py::class_<PrefixStore, Store, Held<PrefixStore>>(module, "PrefixStore", "The keys of another store under 'prefix/'.")
      .def(py::init([](const std::string& prefix, std::optional<intrusive_ptr<Store>> store) {
             return make_intrusive<PrefixStore>(prefix, store ? *store : intrusive_ptr<Store>());
           }),
           py::arg("prefix"), py::arg("store"), py::keep_alive<1, 3>())
      .def_property_readonly("underlying_store", [](const PrefixStore& s) { return own_object(s.getUnderlyingStore()); })
      .def_property_readonly("_underlying_non_prefix_store",
                             [](const PrefixStore& s) { return own_object(s.getUnderlyingNonPrefixStore()); });
  py::class_<FileStore, Store, Held<FileStore>>(module, "FileStore", "A store in a file that all processes reach.")
      .def(py::init([](const std::string& path, int world_size) { return make_intrusive<FileStore>(path, world_size); }),
           py::arg("file_name"), py::arg("world_size") = -1, Unlocked())
      .def_property_readonly("path", &FileStore::getPath);
  py::class_<HashStore, Store, Held<HashStore>>(module, "HashStore", "A store in this process.").def(py::init([] {
    return make_hash_store();
  }));
  py::class_<TCPStore, Store, Held<TCPStore>>(module, "TCPStore", "A store that one process serves and the others connect to.")
      .def(py::init([](const std::string& host, uint16_t port, std::optional<int64_t> world_size, bool is_master,
                       std::chrono::milliseconds timeout, bool wait_for_workers, bool multi_tenant, std::optional<int> listen_fd,
                       bool use_libuv) {
             return without_lock(true, [&] {
               return make_tcp_store(host, port, world_size, is_master, timeout, wait_for_workers, multi_tenant, listen_fd, use_libuv);
             });
           }),
           py::arg("host_name"), py::arg("port"), py::arg("world_size") = py::none(), py::arg("is_master") = false,
           py::arg("timeout") = Store::kDefaultTimeout, py::arg("wait_for_workers") = true, py::arg("multi_tenant") = false,
           py::arg("master_listen_fd") = py::none(), py::arg("use_libuv") = true)
      .def_property_readonly("host", &TCPStore::getHost)
      .def_property_readonly("port", &TCPStore::getPort)
      .def_property_readonly("libuvBackend", &TCPStore::isLibUvBackend, "What it was made with; there is one kind of server.")
      .def("__repr__", &TCPStore::repr);
  module.def(
      "_test_python_store", [](Store& store) { without_lock(true, [&] { use_as_cpp_does(store); }); }, py::arg("store"),
      "Calls a store that is written in Python as C++ code does. RuntimeError where it answers something else.");
}

}  // namespace cresset::python
