// Evenly spaced values of a series of unknown length, in bounded memory.
// Invariant: holds values number 0, s, 2s, ... of the series, where s is a power of two that depends only on the
// length. So ranks that take the same steps keep the same steps. Adding allocates nothing.
// Used by metrics/step_statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::metrics {

class EvenSample {
 public:
  /// `most` is even and at least 2.
  explicit EvenSample(std::size_t most) : most_{most} { values_.reserve(most); }

  void add(double value) {
    if (n_seen_++ % stride_ != 0) return;
    if (values_.size() == most_) {
      drop_every_second();
      if ((n_seen_ - 1) % stride_ != 0) return;
    }
    values_.push_back(value);
  }

  void clear() noexcept {
    values_.clear();
    stride_ = 1;
    n_seen_ = 0;
  }

  [[nodiscard]] std::span<const double> values() const noexcept { return values_; }

 private:
  void drop_every_second() noexcept {
    for (std::size_t i = 0; 2 * i < values_.size(); ++i) values_[i] = values_[2 * i];
    values_.resize(values_.size() / 2);
    stride_ *= 2;
  }

  std::size_t most_;
  std::vector<double> values_{};
  std::uint64_t stride_ = 1;
  std::uint64_t n_seen_ = 0;
};

}  // namespace lockstep::metrics
