#include "training/run/status.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/pending.hpp"
#include "metrics/fingerprint.hpp"
#include "training/run/lock.hpp"

namespace lockstep::training {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written

constexpr std::string_view failure_line = "\nfailed: ";  ///< in run.lock, behind the line that names its holder
constexpr std::array status_fields{core::JsonField{"state", core::json_text}};
constexpr core::JsonDocument status_document{.what = "the status of a run",
                                             .rule = {.kind = core::JsonKind::object, .fields = status_fields}};

std::string content_of(const io::Folder& folder, const char* name) {
  constexpr core::Bytes most{std::uint64_t{16} << 20};
  return io::read_text(folder.open(name), most);
}

Json read_status(const io::Folder& folder) {
  return core::parse_json<Json>(content_of(folder, status_name), folder.path_of(status_name), status_document);
}

std::string time_text() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

/// Overwrites the existing file in place, which needs no space: for a disk without free blocks or inodes. Touches
/// nothing unless all fits.
bool overwrite(const io::Folder& folder, const char* name, std::string_view document) noexcept {
  const core::Descriptor file{::openat(folder.descriptor(), name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  const auto size = static_cast<off_t>(document.size());
  return file && posix_fallocate(file.get(), 0, size) == 0 &&
         ::pwrite(file.get(), document.data(), document.size(), 0) == size && ftruncate(file.get(), size) == 0;
}

void put_status(const io::Folder& folder, const std::string& document) {
  try {
    core::write_whole_below(folder.descriptor(), folder.path_of(status_name), std::as_bytes(std::span{document}));
  } catch (const core::Error&) {
    if (!overwrite(folder, status_name, document)) throw;
  }
}

/// Into run.lock, which no process replaces, and which the next run clears.
void add_failure(const io::Folder& folder, const std::string& message) noexcept {
  constexpr int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const core::Descriptor lock{::openat(folder.descriptor(), run_lock_name, flags)};
  const std::string line = fmt::format("{}{}\n", failure_line, message);
  if (lock) static_cast<void>(!::write(lock.get(), line.data(), line.size()));
}

/// The first failure that other processes have told; empty if there is none, or it cannot be read.
std::string first_failure(const io::Folder& folder) noexcept try {
  const std::string text = content_of(folder, run_lock_name);
  const std::size_t at = text.find(failure_line);
  if (at == text.npos) return {};
  const std::size_t begin = at + failure_line.size();
  return text.substr(begin, text.find('\n', begin) - begin);
} catch (const std::exception&) {
  return {};
}

}  // namespace

std::string state_in(const std::string& folder) noexcept try {
  return read_status(io::Folder{folder}).at("state");
} catch (const std::exception&) {
  return {};
}

std::string message_of(std::string_view report) {
  constexpr std::string_view prefix = "error: ";
  if (report.starts_with(prefix)) report.remove_prefix(prefix.size());
  std::string message;
  for (std::size_t begin = 0; begin < report.size();) {
    const std::size_t end = std::min(report.find('\n', begin), report.size());
    const std::size_t first = std::min(report.find_first_not_of(' ', begin), end);
    if (first < end) message += fmt::format("{}{}", message.empty() ? "" : "; ", report.substr(first, end - first));
    begin = end + 1;
  }
  return message;
}

bool was_ended_by_others(const io::Folder& folder) noexcept try {
  return read_status(folder).at("state") != name(RunStatus::running);
} catch (const std::exception&) {
  return false;
}

// Who tells a failure adds it to run.lock before it writes the file. So one of the two writers sees the other.
void write_status(const io::Folder& folder, const Status& status) {
  put_status(folder, to_document(status, time_text()));
  if (status.state != RunStatus::running && status.state != RunStatus::stopped) return;
  const std::string failure = first_failure(folder);
  if (failure.empty()) return;
  Status failed = status;
  failed.state = RunStatus::failed;
  failed.message = failure;
  failed.eta.reset();
  put_status(folder, to_document(failed, time_text()));
}

void mark_failed(const io::Folder& folder, const std::string& reason) noexcept try {
  Json status = read_status(folder);
  if (status.at("state") != name(RunStatus::running)) return;
  const std::string message = message_of(reason);
  add_failure(folder, message);
  const std::string first = first_failure(folder);  // this one may be its consequence
  status["state"] = name(RunStatus::failed);
  status["message"] = first.empty() ? message : first;
  status["eta_s"] = nullptr;
  status["updated"] = time_text();
  put_status(folder, metrics::dump(status, 2) + "\n");
} catch (const std::exception&) {
  // The job ends anyway, for a reason that has been reported.
}

std::string note_of(const io::Folder& folder) { return fmt::format("{} {}", folder.identity(), folder.path()); }

void mark_noted_failed(const std::string& note, const std::string& reason) noexcept try {
  const io::Folder folder{note.substr(note.find(' ') + 1)};
  if (note_of(folder) == note) mark_failed(folder, reason);
} catch (const std::exception&) {
  // It has gone, and so has its status.
}

}  // namespace lockstep::training
