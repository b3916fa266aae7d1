#include "runtime/watch/testimony.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/descriptor.hpp"
#include "core/pending.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view beginning = "stalled-";
constexpr std::string_view ending = ".txt";
constexpr std::string_view header = "host rank slot process condition phase unit position wait number";

std::string path_in(const std::string& folder, std::string_view host) {
  return (fs::path{folder} / fmt::format("{}{}{}", beginning, host, ending)).string();
}

bool is_testimony(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(beginning) && name.ends_with(ending);
}

template <class Enum>
bool take(std::istream& from, Enum& to, Enum last) {
  unsigned number = 0;
  if (!(from >> number) || number > static_cast<unsigned>(last)) return false;
  to = static_cast<Enum>(number);
  return true;
}

}  // namespace

std::string to_text(const std::vector<Finding>& findings) {
  std::string text = fmt::format("{}\n", header);
  for (const Finding& f : findings)
    text += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", f.host, f.rank, f.slot, f.process,
                        static_cast<unsigned>(f.condition), static_cast<unsigned>(f.phase), f.unit, f.position,
                        static_cast<unsigned>(f.wait), f.wait_number);
  return text;
}

std::optional<std::vector<Finding>> parse_findings(std::string_view text) {
  std::istringstream lines{std::string{text}};
  std::string line;
  if (!std::getline(lines, line) || line != header) return std::nullopt;
  std::vector<Finding> findings;
  while (std::getline(lines, line)) {
    std::istringstream words{line};
    Finding f;
    if (!(words >> f.host >> f.rank >> f.slot >> f.process) || !take(words, f.condition, Condition::left) ||
        !take(words, f.phase, Activity::left) || !(words >> f.unit >> f.position) ||
        !take(words, f.wait, Wait::agreement) || !(words >> f.wait_number))
      return std::nullopt;
    findings.push_back(std::move(f));
  }
  return findings;
}

void testify(const std::string& folder, const std::string& host, const std::vector<Finding>& findings) noexcept try {
  const std::string text = to_text(findings);
  const core::Descriptor place{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  core::write_whole_below(place.get(), path_in(folder, host), std::as_bytes(std::span{text}));
} catch (const std::exception&) {
  // The other nodes hear nothing from this one, and report that.
}

std::vector<Finding> hear_others(const std::string& folder, const std::string& host) noexcept try {
  std::vector<Finding> all;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder}) {
    const bool is_file = fs::is_regular_file(entry.symlink_status());
    if (!is_file || !is_testimony(entry.path()) || entry.path() == path_in(folder, host)) continue;
    std::ostringstream text;
    text << std::ifstream{entry.path()}.rdbuf();
    const auto findings = parse_findings(text.str());
    if (findings) all.insert(all.end(), findings->begin(), findings->end());
  }
  return all;
} catch (const std::exception&) {
  return {};
}

void forget_testimonies(const std::string& folder) noexcept try {
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator{folder})
    if (is_testimony(entry.path())) old.push_back(entry.path());
  for (const fs::path& path : old) fs::remove(path);
} catch (const std::exception&) {
  // Code that writes to the folder reports the error.
}

}  // namespace lockstep::runtime
