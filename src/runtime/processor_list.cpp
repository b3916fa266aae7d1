#include "runtime/processor_list.hpp"

#include <fmt/format.h>

#include <charconv>
#include <sstream>
#include <system_error>

namespace lockstep::runtime {

std::string format_processors(const std::vector<int>& processors) {
  std::string text;
  for (std::size_t i = 0; i < processors.size();) {
    std::size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", processors[i]) : fmt::format("{}-{}", processors[i], processors[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> parse_processors(const std::string& text) {
  std::vector<int> processors;
  std::istringstream ranges{text};
  for (std::string range; std::getline(ranges, range, ',');) {
    const char* const end = range.data() + range.size();
    int first = 0;
    const auto [dash, error] = std::from_chars(range.data(), end, first);
    if (error != std::errc{}) continue;
    int last = first;
    if (dash != end) std::from_chars(dash + 1, end, last);
    for (int processor = first; processor <= last; ++processor) processors.push_back(processor);
  }
  return processors;
}

bool have_common(const std::vector<int>& one, const std::vector<int>& other) {
  for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end(); *a < *b ? ++a : ++b)
    if (*a == *b) return true;
  return false;
}

}  // namespace lockstep::runtime
