#include "checkpoint/box.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace lockstep::checkpoint {

Box whole(std::string tensor, std::vector<std::uint64_t> shape) {
  Box box{.tensor = std::move(tensor), .shape = std::move(shape)};
  box.n_rows = static_cast<std::size_t>(box.shape.front());
  for (std::size_t d = 1; d < box.shape.size(); ++d) box.n_inner *= static_cast<std::size_t>(box.shape[d]);
  box.rows = {0, box.n_rows};
  return box;
}

namespace {

/// The place of a tensor's element in a box, and how many elements from it on are in the box; or, outside the box, how
/// many from it on are also outside.
struct Run {
  std::size_t at = 0;  ///< in the box
  std::size_t n = 0;   ///< consecutive elements of the tensor
  bool is_in = false;
};

Run run_at(const Box& box, std::size_t element) {
  const std::size_t plane = box.n_rows * box.n_inner;
  const std::size_t outer = element / plane, within = element % plane;
  const std::size_t begin = box.rows.offset * box.n_inner, end = box.rows.end() * box.n_inner;
  if (within < begin) return {.n = begin - within};
  if (within >= end) return {.n = plane - within};
  return {.at = outer * (end - begin) + within - begin, .n = end - within, .is_in = true};
}

}  // namespace

std::size_t copy_common(const Box& from, std::span<const float> source, const Box& to, std::span<float> target) {
  const std::size_t n = from.n_outer * from.n_rows * from.n_inner;
  core::require(n == to.n_outer * to.n_rows * to.n_inner, "both boxes belong to one tensor");
  core::require(source.size() == from.n_elements() && target.size() == to.n_elements(),
                "source and target have the sizes of their boxes");
  std::size_t n_copied = 0;
  for (std::size_t element = 0; element < n;) {
    const Run there = run_at(from, element), here = run_at(to, element);
    const std::size_t n_same = std::min(there.n, here.n);
    if (there.is_in && here.is_in) {
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(there.at), n_same,
                  target.begin() + static_cast<std::ptrdiff_t>(here.at));
      n_copied += n_same;
    }
    element += n_same;
  }
  return n_copied;
}

}  // namespace lockstep::checkpoint
