#include "nn/ops/conv/host_weights.hpp"

#include "nn/host/elements.hpp"

namespace lockstep::nn::host {
namespace {

constexpr std::size_t block_rows = 16;

std::size_t n_blocks(dnnl::memory::dim n) { return static_cast<std::size_t>(n + 15) / 16; }

}  // namespace

std::optional<WeightsCopy> WeightsCopy::find(const Tensor& from, const Desc& to) {
  using Tag = dnnl::memory::format_tag;
  using Type = dnnl::memory::data_type;
  const Dims dims = dims_of(from.desc);
  if (dims.size() != 4) return std::nullopt;
  const auto is = [&](const Desc& desc, Type type, Tag tag) { return desc == Desc{dims, type, tag}; };
  WeightsCopy found;
  found.from_ = from.place;
  found.n_out_blocks_ = n_blocks(dims[0]);
  const auto n_positions = static_cast<std::size_t>(dims[2] * dims[3]);
  if (is(from.desc, Type::f32, Tag::Acdb16a) && is(to, Type::bf16, Tag::AcdB16a2b)) {
    found.change_ = Change::pair_rows;
    found.n_in_blocks_ = n_positions;  // each position has all inputs
    found.n_rows_ = static_cast<std::size_t>(dims[1]);
    return found;
  }
  if (!is(from.desc, Type::f32, Tag::ABcd16b16a)) return std::nullopt;
  found.n_in_blocks_ = n_blocks(dims[1]);
  found.n_rows_ = n_positions * block_rows;
  found.is_input_first_ = is(to, Type::f32, Tag::BAcd16a16b) || is(to, Type::bf16, Tag::BAcd8a16b2a);
  if (is(to, Type::f32, Tag::ABcd16a16b) || is(to, Type::f32, Tag::BAcd16a16b))
    found.change_ = Change::transpose;
  else if (is(to, Type::bf16, Tag::ABcd8a16b2a) || is(to, Type::bf16, Tag::BAcd8a16b2a))
    found.change_ = Change::transpose_pairs;
  else if (is(to, Type::bf16, Tag::ABcd8b16a2b))
    found.change_ = Change::pair_rows;
  else
    return std::nullopt;
  return found;
}

void WeightsCopy::run(const Storage& storage) const {
  constexpr std::size_t row = 16, least_rows = 1024;
  const auto* const from = storage.at<const float>(from_);
  auto* const floats = storage.at<float>(to_);
  auto* const bfloats = storage.at<core::bfloat16>(to_);
  for_parts(n_out_blocks_ * n_in_blocks_, least_rows / n_rows_ + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) {
      const std::size_t o = part / n_in_blocks_, i = part % n_in_blocks_;
      const std::size_t target = is_input_first_ ? i * n_out_blocks_ + o : part;
      const float* const rows = from + part * n_rows_ * row;
      const std::size_t even = (n_rows_ + 1) / 2 * 2;
      switch (change_) {
        case Change::transpose:
          loops().transpose_blocks(rows, floats + target * n_rows_ * row, n_rows_ / block_rows);
          break;
        case Change::transpose_pairs:
          loops().transpose_pairs(rows, bfloats + target * n_rows_ * row, n_rows_ / block_rows);
          break;
        case Change::pair_rows: loops().pair_rows(rows, bfloats + target * even * row, n_rows_); break;
      }
    }
  });
}

}  // namespace lockstep::nn::host
