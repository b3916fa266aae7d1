# The element loops: LOCKSTEP_KERNEL_SOURCES and the flags of each. The instruction sets are chosen at run time, so only
# these files may carry their flags. The loops are optimized in every build type: -O1, for sanitizers whose checks take
# minutes to optimize, is the least that leaves no inline function of std behind as a weak symbol. Contraction of a*b+c is
# off in all, as all sets must give the same bits.
set(LOCKSTEP_KERNEL_SOURCES kernels.cpp kernels_plain.cpp)
if(LOCKSTEP_SANITIZE)
  set(_loop_flags -ffp-contract=off -O1)
else()
  set(_loop_flags -ffp-contract=off -O3)
endif()
set_source_files_properties(kernels_plain.cpp PROPERTIES COMPILE_OPTIONS "${_loop_flags}")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND LOCKSTEP_KERNEL_SOURCES kernels_avx2.cpp kernels_avx512.cpp kernels_dispatch_x86.cpp)
  set_source_files_properties(kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "${_loop_flags};-mavx2;-mfma;-mf16c")
  set_source_files_properties(
    kernels_avx512.cpp
    PROPERTIES COMPILE_OPTIONS
               "${_loop_flags};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mf16c;-mfma;-mprefer-vector-width=512")
else()
  list(APPEND LOCKSTEP_KERNEL_SOURCES kernels_dispatch_portable.cpp)
endif()
unset(_loop_flags)
