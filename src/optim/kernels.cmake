# The element loops: LOCKSTEP_OPTIM_KERNEL_SOURCES and the flags of each. The instruction sets are chosen at run time,
# so only these files may carry their flags. Contraction of a*b+c is off: the loops say themselves where they fuse,
# which is where PyTorch does, so that all sets give its bits. Without errno a square root is one instruction.
set(LOCKSTEP_OPTIM_KERNEL_SOURCES kernels_plain.cpp)
if(LOCKSTEP_SANITIZE)
  set(_loop_flags -ffp-contract=off -fno-math-errno -O1)
else()
  set(_loop_flags -ffp-contract=off -fno-math-errno -O3)
endif()
set_source_files_properties(kernels_plain.cpp PROPERTIES COMPILE_OPTIONS "${_loop_flags}")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND LOCKSTEP_OPTIM_KERNEL_SOURCES kernels_avx2.cpp kernels_avx512.cpp kernels_dispatch_x86.cpp)
  set_source_files_properties(kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "${_loop_flags};-mavx2;-mfma")
  set_source_files_properties(
    kernels_avx512.cpp
    PROPERTIES COMPILE_OPTIONS "${_loop_flags};-mavx512f;-mavx512vl;-mavx512dq;-mfma;-mprefer-vector-width=512")
else()
  list(APPEND LOCKSTEP_OPTIM_KERNEL_SOURCES kernels_dispatch_portable.cpp)
endif()
unset(_loop_flags)
