// Arrays of the device for tests of optimizers' kernels, and values to fill them with.
// Invariant: copies use pinned memory that lives as long as the array; read() waits for the stream.
// Used by the tests of optim/cuda.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel/portable.hpp"

namespace lockstep::optim::cuda {

template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t n)
      : device_{core::Bytes{n * sizeof(T)}, runtime::Memory::device},
        host_{core::Bytes{n * sizeof(T)}, runtime::Memory::pinned} {}
  OnDevice(runtime::Stream& stream, const std::vector<T>& values) : OnDevice(values.size()) { write(stream, values); }

  void write(runtime::Stream& stream, const std::vector<T>& values) {
    stream.wait();
    if (!values.empty()) std::memcpy(host_.bytes().data(), values.data(), values.size() * sizeof(T));
    stream.copy(device_.on_device<std::byte>(), host_.bytes());
  }
  [[nodiscard]] std::vector<T> read(runtime::Stream& stream) const {
    stream.copy(host_.bytes(), device_.on_device<std::byte>());
    stream.wait();
    const auto values = host_.as<T>();
    return {values.begin(), values.end()};
  }
  [[nodiscard]] std::string bytes(runtime::Stream& stream) const {
    const std::vector<T> values = read(stream);
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
  [[nodiscard]] runtime::DeviceSpan<T> span() const { return device_.on_device<T>(); }
  /// For numbers of a rule.
  [[nodiscard]] runtime::DeviceSpan<std::byte> raw() const { return device_.on_device<std::byte>(); }

 private:
  runtime::Buffer device_;
  runtime::Buffer host_;
};

template <class T>
[[nodiscard]] std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> result;
  for (const float value : values) result.push_back(runtime::kernel::round_to<T>(value));
  return result;
}

template <class T>
[[nodiscard]] std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> result;
  for (const T value : values) result.push_back(runtime::kernel::to_float(value));
  return result;
}

/// Values in [-0.5, 0.5), multiples of 2^-24.
class Values {
 public:
  explicit Values(std::uint32_t seed) : state_{seed} {}
  [[nodiscard]] std::vector<float> take(std::size_t n, float times = 1) {
    std::vector<float> values;
    for (std::size_t i = 0; i < n; ++i) {
      state_ = state_ * 1664525U + 1013904223U;
      values.push_back(static_cast<float>(static_cast<double>(state_ >> 8) * 0x1p-24 - 0.5) * times);
    }
    return values;
  }

 private:
  std::uint32_t state_;
};

template <class T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
[[nodiscard]] bool same_bits(const T& a, const T& b) {
  return same_bits(std::vector<T>{a}, std::vector<T>{b});
}

}  // namespace lockstep::optim::cuda
