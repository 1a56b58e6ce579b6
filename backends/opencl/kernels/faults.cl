// The first fault of a device is kept: its code (see src/faults.cpp) and two numbers.
#define FAULTS global long *faults
#define BAD_INDEX 1
#define BAD_TARGET 2
#define ZERO_DIVISION 3
#define FAULT(code, value, size)                                                    \
  if (atomic_cmpxchg((volatile global int *)faults, 0, code) == 0) {                \
    faults[1] = (value);                                                            \
    faults[2] = (size);                                                             \
  }
