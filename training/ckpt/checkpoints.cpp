#include "training/ckpt/checkpoints.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "checkpoint/folder.hpp"
#include "core/descriptor.hpp"

namespace lockstep::training::ckpt {
namespace {

bool may_not_be_read(const std::string& path) {
  const core::Descriptor opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)};
  return !opened && (errno == EACCES || errno == EPERM);
}

}  // namespace

std::vector<std::string> require_checkpoints(const std::string& folder) {
  return checkpoint::require_checkpoints(folder, "FOLDER");
}

core::ExitCode code_of(const core::Error& error, const std::string& path) {
  if (may_not_be_read(path + "/.")) return core::ExitCode::system;  // or not be searched
  if (error.code() != core::ExitCode::usage) return error.code();
  std::error_code reason;
  for (std::filesystem::directory_iterator one{path, reason}, end; !reason && one != end; one.increment(reason))
    if (may_not_be_read(one->path())) return core::ExitCode::system;
  return error.code();
}

SavedAt saved_at(const checkpoint::Checkpoint& one) {
  const nlohmann::json content = nlohmann::json::parse(one.content());
  const nlohmann::json state = content.value("state", nlohmann::json::object());
  return {state.value("epoch", std::uint64_t{0}) + 1, state.value("step", std::uint64_t{0}),
          state.value("samples_seen", std::uint64_t{0})};
}

int on_first_rank(const runtime::Session& session, const std::function<core::ExitCode()>& work) {
  core::ExitCode code = core::ExitCode::ok;
  const auto complaint = core::complaint_of([&] {
    if (session.world().rank() == 0) code = work();
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return core::to_int(runtime::broadcast_value(session.world(), code));
}

}  // namespace lockstep::training::ckpt
