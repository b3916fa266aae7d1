#include "data/format/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace lockstep::data {
namespace {

/// In the order of Remark::Kind.
constexpr std::array<std::string_view, 5> remark_words{"note", "assumed", "changed", "left out", "warning"};
constexpr std::string_view after_word = ": ";

}  // namespace

std::string line_of(const Remark& remark) {
  return fmt::format("{}{}{}", remark_words.at(static_cast<std::size_t>(remark.kind)), after_word,
                     core::printable(remark.text));
}

Remark parse_remark(std::string_view line) {
  const std::size_t end = line.find(after_word);
  const auto word = std::find(remark_words.begin(), remark_words.end(), line.substr(0, end));
  core::require(word != remark_words.end(), "the line is a remark");
  return {static_cast<Remark::Kind>(word - remark_words.begin()), std::string{line.substr(end + after_word.size())}};
}

std::vector<std::byte> Source::read_encoded(std::size_t, std::uint64_t, std::span<std::byte>) {
  core::fail_system("broken promise: only sources with encoded samples are asked for them");
}

std::string Source::name_of(std::size_t split, std::uint64_t index) const {
  const std::vector<SourceSplit> all = splits();
  return all.size() == 1 ? fmt::format("sample {}", index) : fmt::format("sample {} of {}", index, all.at(split).name);
}

}  // namespace lockstep::data
