# The element-wise loops: LOCKSTEP_LOOP_SOURCES and the flags of each. Instruction sets are chosen at run time, so only these
# files may carry their flags. They are optimized in every build type; a*b+c is never contracted, as all sets must give the
# same bits.
set(LOCKSTEP_LOOP_SOURCES loops_plain.cpp)
set(_loop_flags -ffp-contract=off -fopenmp-simd)
if(LOCKSTEP_SANITIZE)
  list(APPEND _loop_flags -O1)
else()
  list(APPEND _loop_flags -O3)
endif()
set_source_files_properties(loops_plain.cpp PROPERTIES COMPILE_OPTIONS "${_loop_flags}")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND LOCKSTEP_LOOP_SOURCES loops_avx2.cpp loops_avx512.cpp loops_choice_x86.cpp)
  set_source_files_properties(loops_avx2.cpp PROPERTIES COMPILE_OPTIONS "${_loop_flags};-mavx2;-mfma")
  set_source_files_properties(
    loops_avx512.cpp PROPERTIES COMPILE_OPTIONS
                                "${_loop_flags};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mprefer-vector-width=512")
else()
  list(APPEND LOCKSTEP_LOOP_SOURCES loops_choice_portable.cpp)
endif()
unset(_loop_flags)
