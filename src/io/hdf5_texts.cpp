#include <fmt/format.h>

#include <algorithm>

#include "io/hdf5.hpp"
#include "io/hdf5_dataset_state.hpp"

namespace lockstep::io {
namespace {

TypeId type_of(const Place& place, hid_t dataset) {
  return TypeId{checked(place, "read the element type", [&] { return H5Dget_type(dataset); })};
}

/// Texts of any length, which the library allocates.
struct Allocated {
  std::vector<char*> texts;

  explicit Allocated(std::size_t n) : texts(n, nullptr) {}
  Allocated(const Allocated&) = delete;
  Allocated& operator=(const Allocated&) = delete;
  ~Allocated() {
    for (char* text : texts) H5free_memory(text);
  }
};

/// Splits texts of `length` bytes each. If zeros end texts, drops what follows them.
std::vector<std::string> cut(const std::string& texts, std::size_t length, std::size_t n, H5T_str_t padding) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < n; ++i) {
    std::string text = texts.substr(i * length, length);
    if (padding == H5T_STR_NULLTERM) text.resize(std::min(text.find('\0'), text.size()));
    text.resize(text.find_last_not_of('\0') + 1);
    if (padding == H5T_STR_SPACEPAD) text.resize(text.find_last_not_of(' ') + 1);
    result.push_back(std::move(text));
  }
  return result;
}

}  // namespace

bool Hdf5Dataset::is_text() const {
  const TypeId type = type_of(state_->place, state_->id.get());
  return H5Tget_class(type.get()) == H5T_STRING;
}

std::vector<std::string> Hdf5Dataset::read_texts(std::uint64_t first, std::uint64_t n) const {
  constexpr std::size_t longest = std::size_t{1} << 16;
  const State& state = *state_;
  const TypeId type = type_of(state.place, state.id.get());
  const std::string action = fmt::format("read rows [{}, {})", first, first + n);
  const State::Rows rows = state.select(first, n, action);
  const auto read = [&](void* data) {
    checked(state.place, action,
            [&] { return H5Dread(state.id.get(), type.get(), rows.memory.get(), rows.file.get(), H5P_DEFAULT, data); });
  };
  if (H5Tis_variable_str(type.get()) > 0) {
    Allocated allocated{n};
    read(allocated.texts.data());
    std::vector<std::string> texts;
    for (const char* text : allocated.texts) texts.emplace_back(text != nullptr ? text : "");
    return texts;
  }
  const std::size_t length = H5Tget_size(type.get());
  if (length > longest)
    core::fail_usage({.what = fmt::format("texts of {} bytes", length),
                      .where = describe(state.place),
                      .expected = fmt::format("{} bytes at most", longest),
                      .fix = "write shorter texts, or texts of variable length"});
  std::string texts(n * length, '\0');
  read(texts.data());
  return cut(texts, length, n, H5Tget_strpad(type.get()));
}

}  // namespace lockstep::io
