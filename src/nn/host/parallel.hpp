// Loops over all threads of the Kokkos session.
// Invariant: parts depend only on the length and the number of threads; short loops stay on the calling thread.
// Used by the layers of nn/ops, and by the loss of nn/host.
#pragma once

#include <cstddef>
#include <type_traits>

namespace lockstep::nn::host {

/// A function of the caller, which must not be called after the caller returns.
class PartFunction {
 public:
  template <class F>
  explicit PartFunction(const F& f)
      : object_{&f}, call_{[](const void* object, std::size_t begin, std::size_t end) {
          (*static_cast<const F*>(object))(begin, end);
        }} {}

  void operator()(std::size_t begin, std::size_t end) const { call_(object_, begin, end); }

 private:
  const void* object_;
  void (*call_)(const void*, std::size_t, std::size_t);
};

void run_parts(std::size_t n, std::size_t least, const PartFunction& part);

/// Calls body(begin, end) for parts of [0, n), none shorter than `least` unless n is.
template <class F>
void for_parts(std::size_t n, std::size_t least, const F& body) {
  run_parts(n, least, PartFunction{body});
}

/// For element-wise loops: a second thread does not pay off for less work than this.
inline constexpr std::size_t least_elements = 8192;

}  // namespace lockstep::nn::host
