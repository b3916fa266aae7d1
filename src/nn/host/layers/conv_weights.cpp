#include "nn/host/layers/conv_weights.hpp"

#include "nn/host/loops.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {

std::optional<BlockTranspose> BlockTranspose::find(const Tensor& from, const Desc& to) {
  using Tag = dnnl::memory::format_tag;
  const Dims dims = dims_of(from.desc);
  const auto is = [&](const Desc& desc, Tag tag) { return desc == Desc{dims, dnnl::memory::data_type::f32, tag}; };
  if (dims.size() != 4 || !is(from.desc, Tag::ABcd16b16a)) return std::nullopt;
  if (!is(to, Tag::ABcd16a16b) && !is(to, Tag::BAcd16a16b)) return std::nullopt;
  BlockTranspose found;
  found.from_ = from.place;
  found.n_out_blocks_ = static_cast<std::size_t>(dims[0] + 15) / 16;
  found.n_in_blocks_ = static_cast<std::size_t>(dims[1] + 15) / 16;
  found.n_positions_ = static_cast<std::size_t>(dims[2] * dims[3]);
  found.is_input_first_ = is(to, Tag::BAcd16a16b);
  return found;
}

void BlockTranspose::run(const Storage& storage) const {
  constexpr std::size_t block = 256, least_blocks = 64;
  const auto* const from = storage.at<const float>(from_);
  auto* const to = storage.at<float>(to_);
  for_parts(n_out_blocks_ * n_in_blocks_, least_blocks / n_positions_ + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t pair = begin; pair < end; ++pair) {
      const std::size_t o = pair / n_in_blocks_, i = pair % n_in_blocks_;
      const std::size_t target = is_input_first_ ? i * n_out_blocks_ + o : pair;
      loops().transpose_blocks(from + pair * n_positions_ * block, to + target * n_positions_ * block, n_positions_);
    }
  });
}

}  // namespace lockstep::nn::host
