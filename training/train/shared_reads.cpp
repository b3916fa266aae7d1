#include "training/train/shared_reads.hpp"

#include "core/error.hpp"

namespace lockstep::training {

void read_together(std::size_t n, const ReadTensor& read, const std::function<void(const ReadTensor& next)>& use) {
  std::size_t n_read = 0;
  const ReadTensor next = [&](std::size_t i) {
    core::require(i == n_read && i < n, "tensors are read in order");
    ++n_read;
    read(i);
  };
  auto failure = core::failure_of([&] {
    if (use) use(next);
  });
  while (n_read < n) {
    auto more = core::failure_of([&] { next(n_read); });
    if (!failure) failure = std::move(more);
  }
  if (failure) throw core::Error{*failure};
}

}  // namespace lockstep::training
