// A made-up driver of NVIDIA: as libcuda.so.1 in $LD_LIBRARY_PATH it shows how a program's runtime library reacts to a
// driver of another version, or one without GPUs.
// $LOCKSTEP_MADE_UP_DRIVER: the CUDA that it supports, 12000 for 12.0. $LOCKSTEP_MADE_UP_DRIVER_BEGINS: the result of
// cuInit(), a CUresult, 0 by default. There is no GPU behind it: all other calls fail.
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

// The runtime library gets all other functions, and this one, through it.
int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* status) {
  *function = std::strcmp(name, "cuInit") == 0               ? address(cuInit)
              : std::strcmp(name, "cuDriverGetVersion") == 0 ? address(cuDriverGetVersion)
              : std::strcmp(name, "cuGetProcAddress") == 0   ? address(cuGetProcAddress_v2)
                                                             : address(fail);
  if (status != nullptr) *status = 0;
  return 0;
}

// The version of drivers before 12.0.
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // extern "C"
