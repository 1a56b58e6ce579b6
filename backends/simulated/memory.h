// Device memory in an address space of its own: every block is mapped twice. The address that the host knows has no access
// rights, so a host that reads it is killed by a fault; the device's worker uses the other one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simulated {

/// A block; the result is the host's address, or with opaque memory a number that is no address at all. Null: no memory.
void* allocate_block(std::size_t nbytes);
void free_block(void* handle);
/// The worker's address of a byte of a block. Null for an address in no block, and for one that reaches beyond its end.
char* device_address(const void* handle, std::size_t offset, std::size_t nbytes);
/// How many blocks there are (for tests of leaks).
std::size_t live_blocks();

}  // namespace simulated
