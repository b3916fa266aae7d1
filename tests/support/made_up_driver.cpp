// A driver of NVIDIA's that is made up: as libcuda.so.1 in $LD_LIBRARY_PATH it shows what the runtime library in a
// program makes of a driver of another version, or of one that shows it nothing.
// $LOCKSTEP_MADE_UP_DRIVER: the CUDA that it serves, 12000 of 12.0; $LOCKSTEP_MADE_UP_DRIVER_BEGINS: what it answers to
// cuInit(), a CUresult, 0 unless given. There is no GPU behind it: all else fails.
#include <cstdlib>
#include <cstring>

namespace {

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

int fail() { return 3; }  // CUDA_ERROR_NOT_INITIALIZED

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return number_in("LOCKSTEP_MADE_UP_DRIVER_BEGINS"); }

int cuDriverGetVersion(int* version) {
  *version = number_in("LOCKSTEP_MADE_UP_DRIVER");
  return 0;
}

// By which the runtime library asks for all others, and for this one.
int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* status) {
  *function = std::strcmp(name, "cuInit") == 0               ? address(cuInit)
              : std::strcmp(name, "cuDriverGetVersion") == 0 ? address(cuDriverGetVersion)
              : std::strcmp(name, "cuGetProcAddress") == 0   ? address(cuGetProcAddress_v2)
                                                             : address(fail);
  if (status != nullptr) *status = 0;
  return 0;
}

// As drivers before 12.0 have it.
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // extern "C"
