// An object of another language that lives as long as a storage.
#pragma once

#include <cresset/core/storage.h>

namespace cresset::detail {

/// Gives an object to a storage: `release(object)` runs when the storage's memory goes, on whichever thread drops it last. A storage keeps
/// one object at most.
CRESSET_API void keep_with_storage(const Storage& storage, void* object, void (*release)(void* object));
/// Takes the object back, null where the storage keeps none.
CRESSET_API void* take_kept(const StorageImpl& storage);
/// The storage that keeps this object; null where none does, or its last owner has just gone.
CRESSET_API intrusive_ptr<StorageImpl> keeper_of(const void* object);

}  // namespace cresset::detail
