#include "data/format/names.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace lockstep::data {
namespace {

struct Free {
  void operator()(utf8proc_uint8_t* text) const noexcept { std::free(text); }
};

std::string mapped(std::string_view name, int options) {
  utf8proc_uint8_t* text = nullptr;
  const utf8proc_ssize_t n =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(name.data()), static_cast<utf8proc_ssize_t>(name.size()),
                   &text, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, Free> owned{text};
  return n < 0 ? std::string{name} : std::string{reinterpret_cast<const char*>(text), static_cast<std::size_t>(n)};
}

bool is_ascii(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string composed(std::string_view name) {
  return is_ascii(name) ? std::string{name} : mapped(name, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
}

std::string without_slips(std::string_view name) {
  const std::string folded =
      mapped(name, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE | UTF8PROC_NLF2LF);
  const std::size_t begin = folded.find_first_not_of(" \t\n");
  return begin == std::string::npos ? "" : folded.substr(begin, folded.find_last_not_of(" \t\n") + 1 - begin);
}

}  // namespace lockstep::data
