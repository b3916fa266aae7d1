// The tensors of a safetensors file: 8 bytes of length, a JSON header, data
// (https://github.com/huggingface/safetensors#format).
#include "checkpoint/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json.hpp"
#include "data/format/little_endian.hpp"
#include "io/file.hpp"

namespace lockstep::checkpoint {
namespace {

using HeaderJson = nlohmann::json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t longest_header = std::uint64_t{16} << 20;  ///< some 100,000 tensors
constexpr std::array<std::pair<std::string_view, core::DType>, 13> dtype_words{{{"BOOL", core::DType::uint8},
                                                                                {"I8", core::DType::int8},
                                                                                {"U8", core::DType::uint8},
                                                                                {"I16", core::DType::int16},
                                                                                {"U16", core::DType::uint16},
                                                                                {"I32", core::DType::int32},
                                                                                {"U32", core::DType::uint32},
                                                                                {"I64", core::DType::int64},
                                                                                {"U64", core::DType::uint64},
                                                                                {"F16", core::DType::float16},
                                                                                {"BF16", core::DType::bfloat16},
                                                                                {"F32", core::DType::float32},
                                                                                {"F64", core::DType::float64}}};

[[noreturn]] void refuse_header(const NamedFile& named, const std::string& why) {
  refuse(named, "is not a complete safetensors file: " + why, "the format that safetensors.save_file writes",
         "copy or write the file again");
}

/// A tensor, and its place after the header.
struct PlacedTensor {
  StoredTensor tensor{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

constexpr core::JsonRule size_list{.kind = core::JsonKind::list, .most = 32, .each = &core::json_whole};
constexpr core::JsonRule range_list{.kind = core::JsonKind::list, .least = 2, .most = 2, .each = &core::json_whole};
constexpr std::array tensor_fields{core::JsonField{"dtype", core::json_text}, core::JsonField{"shape", size_list},
                                   core::JsonField{"data_offsets", range_list}};
constexpr core::JsonRule tensor_rule{.kind = core::JsonKind::object, .fields = tensor_fields};
constexpr std::array header_fields{
    core::JsonField{"__metadata__", {.kind = core::JsonKind::object, .each = &core::json_text}, false}};
constexpr core::JsonDocument header_document{
    .what = "a safetensors header",
    .rule = {.kind = core::JsonKind::object, .fields = header_fields, .each = &tensor_rule},
    .most_bytes = longest_header,
    .deepest = 3,  // the list of a shape
    .most_fields = longest_header};

PlacedTensor place_of(const NamedFile& named, const std::string& name, const HeaderJson& json) {
  PlacedTensor place{.tensor = {.spec = {.name = name}}};
  const HeaderJson& offsets = json.at("data_offsets");
  place.begin = offsets.at(0);
  place.end = offsets.at(1);
  place.tensor.spec.shape = json.at("shape").get<nn::Shape>();
  const auto& word = json.at("dtype").get_ref<const std::string&>();
  const auto found = std::ranges::find(dtype_words, word, [](const auto& entry) { return entry.first; });
  if (found != dtype_words.end()) place.tensor.dtype = found->second;
  const auto bytes = find_bytes(place.tensor.spec.shape, place.tensor.dtype ? core::size_of(*place.tensor.dtype) : 1);
  const bool fits = !place.tensor.dtype || bytes == place.end - place.begin;
  if (place.begin > place.end || !bytes || !fits)
    refuse_header(named,
                  fmt::format("bytes [{}, {}) do not fit the type and shape of {}", place.begin, place.end, name));
  return place;
}

/// Requires tensors to follow one another without a gap, from the header to the end of the file.
void require_no_gaps(const NamedFile& named, std::vector<PlacedTensor> places, std::uint64_t n_bytes) {
  std::ranges::sort(places, {}, [](const PlacedTensor& place) { return std::pair{place.begin, place.end}; });
  std::uint64_t at = 0;
  for (const PlacedTensor& place : places) {
    if (place.begin != at)
      refuse_header(named,
                    fmt::format("{} begins at byte {} of the data, not {}", place.tensor.spec.name, place.begin, at));
    at = place.end;
  }
  if (at != n_bytes) refuse_header(named, fmt::format("it has {} bytes of data, not {}", n_bytes, at));
}

std::uint64_t count_in(const HeaderJson& metadata, const char* key) {
  const std::string text = metadata.value(key, "");
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

WeightsInfo info_in(const HeaderJson& metadata) {
  return {.model = metadata.value("model", ""),
          .epoch = count_in(metadata, "epoch"),
          .samples_seen = count_in(metadata, "samples_seen")};
}

std::string read_header_text(const NamedFile& named, const io::File& file) {
  std::array<std::byte, length_bytes> begin{};
  file.read_at(0, begin);
  const auto length = data::from_little_endian<std::uint64_t>(begin);
  const std::uint64_t left = file.size().value - length_bytes;
  if (length > left || length > longest_header)
    refuse_header(named, fmt::format("its header claims {} bytes, but can have at most {}", length,
                                     std::min(left, longest_header)));
  std::string text(length, '\0');
  file.read_at(length_bytes, std::as_writable_bytes(std::span{text}));
  return text;
}

HeaderJson parse_header(const NamedFile& named, const std::string& text) {
  HeaderJson header;
  const auto complaint =
      core::complaint_of([&] { header = core::parse_json<HeaderJson>(text, "its header", header_document); });
  if (complaint)
    refuse_header(named, fmt::format("{}; expected {}", complaint->problem().what, complaint->problem().expected));
  return header;
}

}  // namespace

TensorSource open_safetensors(const NamedFile& named) {
  const auto file = std::make_shared<io::File>(named.path);
  const std::string text = read_header_text(named, *file);
  const HeaderJson header = parse_header(named, text);
  const std::uint64_t data_begin = length_bytes + text.size();
  TensorSource source{.path = named.path};
  std::vector<PlacedTensor> places;
  for (const auto& [name, json] : header.items()) {  // sorted by name
    if (name == "__metadata__")
      source.info = info_in(json);
    else
      places.push_back(place_of(named, name, json));
  }
  require_no_gaps(named, places, file->size().value - data_begin);
  for (const PlacedTensor& place : places) source.tensors.push_back(place.tensor);
  source.read = [named, file, data_begin, places = std::move(places)](std::size_t i, std::span<float> values) {
    const PlacedTensor& place = places.at(i);
    read_floats(named, place.tensor, values,
                [&](std::span<std::byte> bytes) { file->read_at(data_begin + place.begin, bytes); });
  };
  return source;
}

}  // namespace lockstep::checkpoint
