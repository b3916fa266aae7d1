#include "data/load/stage.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "core/error.hpp"
#include "core/temporary.hpp"
#include "core/units.hpp"
#include "data/format/damaged.hpp"
#include "data/format/manifest.hpp"
#include "io/digest.hpp"
#include "io/file.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t copied_together = std::uint64_t{4} << 20;

[[noreturn]] void fail_to_stage(const std::string& what) {
  throw core::Error{core::ExitCode::system,
                    {.what = what, .where = "--stage", .fix = "make room, or name another folder"}};
}

[[noreturn]] void fail_to_write(const std::string& path) {
  fail_to_stage(fmt::format("cannot write {}: {}", path, core::system_reason(errno)));
}

/// A file that is being written, and is removed unless it is finished. Replaces a link with its final name instead of
/// following it: in a shared folder it may belong to another user.
class Copy {
 public:
  explicit Copy(std::string final_path)
      : final_path_{std::move(final_path)}, file_{core::make_temporary_file(final_path_)} {
    if (!file_) fail_to_write(final_path_);
  }
  ~Copy() {
    if (!is_finished_) unlink(file_.path.c_str());
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void append(std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t n = write(file_.descriptor.get(), data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_to_write(final_path_);
      data = data.subspan(static_cast<std::size_t>(n));
    }
  }

  void finish() {
    if (fsync(file_.descriptor.get()) != 0 || std::rename(file_.path.c_str(), final_path_.c_str()) != 0)
      fail_to_write(final_path_);
    is_finished_ = true;
  }

 private:
  std::string final_path_;
  core::Temporary file_;
  bool is_finished_ = false;
};

bool is_right(const fs::path& path, const ManifestFile& item) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error)) && fs::file_size(path, error) == item.bytes &&
         io::digest_of_file(path.string()) == item.digest;
}

void copy_item(const fs::path& from, const fs::path& to, const ManifestFile& item) {
  const io::File source{(from / item.file).string()};
  Copy copy{(to / item.file).string()};
  io::Digest digest;
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(copied_together, item.bytes)));
  for (std::uint64_t done = 0; done < item.bytes; done += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(copied_together, item.bytes - done)));
    read_whole(source.path(), [&] { source.read_at(done, piece); });
    digest.update(piece);
    copy.append(piece);
  }
  if (source.size().value != item.bytes || digest.hex() != item.digest)
    fail_damaged(
        fmt::format("not the file that the manifest lists: expected {} with digest {}, found {} with digest {}",
                    core::format_bytes({item.bytes}), item.digest, core::format_bytes(source.size()), digest.hex()),
        source.path());
  copy.finish();
}

/// The files of `items` for this rank of its node.
std::vector<ManifestFile> share_of(const std::vector<ManifestFile>& items, const runtime::Communicator& node) {
  std::vector<ManifestFile> mine;
  for (auto i = static_cast<std::size_t>(node.rank()); i < items.size(); i += static_cast<std::size_t>(node.n_ranks()))
    mine.push_back(items[i]);
  return mine;
}

/// Collective: calls `work` with each of this rank's files; ranks wait for each other after every one, so that none
/// seems to hang. Returns false if a signal asks for an end.
bool over_files(const runtime::Communicator& world, const std::vector<ManifestFile>& mine,
                const std::function<void(const ManifestFile&)>& work, const std::function<void()>& on_file) {
  for (std::size_t i = 0; world.any(i < mine.size()); ++i) {
    if (runtime::agree_on_interrupt(world) != 0) return false;
    runtime::together(world, [&] {
      if (i < mine.size()) work(mine[i]);
    });
    if (on_file) on_file();
  }
  return true;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (fs::is_symlink(folder))
    core::fail_usage({.what = fmt::format("cannot stage to '{}': it is a link", folder),
                      .where = "--stage",
                      .expected = "a folder, or a new name",
                      .fix = "remove the link, or name another folder"});
  if (error || access(folder.c_str(), W_OK) != 0)
    core::fail_usage(
        {.what = fmt::format("cannot stage to '{}': {}", folder, error ? error.message() : core::system_reason(errno)),
         .where = "--stage",
         .expected = "a folder on every node that you can write to"});
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || status.st_uid != geteuid())
    core::fail_usage({.what = fmt::format("cannot stage to '{}': it belongs to another user", folder),
                      .where = "--stage",
                      .expected = "a folder that you own, or a new name",
                      .fix = "name another folder"});
  core::remove_leftovers(folder, "");
}

void check_room(const std::string& folder, std::uint64_t needed) {
  std::error_code error;
  const auto space = fs::space(folder, error);
  if (error || needed <= space.available) return;
  fs::remove(folder, error);  // if it is empty
  fail_to_stage(fmt::format("no room for the set in '{}': {} are needed, {} are free", folder,
                            core::format_bytes({needed}), core::format_bytes({space.available})));
}

/// Collective over a node: the bytes that its ranks are about to write.
std::uint64_t bytes_of_node(const std::vector<ManifestFile>& missing, const runtime::Communicator& node) {
  std::uint64_t mine = 0;
  for (const ManifestFile& item : missing) mine += item.bytes;
  std::uint64_t all = 0;
  for (const std::uint64_t bytes : runtime::gather_values<std::uint64_t>(node, {&mine, 1})) all += bytes;
  return runtime::broadcast_value(node, all);
}

}  // namespace

std::string stage(const runtime::Communicator& world, const std::string& set_folder, const std::string& parent,
                  const std::function<void()>& on_file) {
  std::string text;
  runtime::together(world, [&] {
    if (world.rank() == 0) text = io::read_text((fs::path{set_folder} / manifest_name).string());
  });
  text = world.broadcast(text);
  const Manifest manifest = parse_manifest(text, set_folder);
  const std::string folder = (fs::path{parent} / io::digest_of(std::as_bytes(std::span{text}))).string();

  const auto own_node = world.split_shared();
  const runtime::Communicator& node = *own_node;
  runtime::together(world, [&] {
    if (node.rank() == 0) make_folder(folder);
  });
  std::vector<ManifestFile> missing;
  const auto find_missing = [&](const ManifestFile& item) {
    if (!is_right(fs::path{folder} / item.file, item)) missing.push_back(item);
  };
  const std::vector<ManifestFile> items = manifest.files();
  if (!over_files(world, share_of(items, node), find_missing, on_file)) return set_folder;
  const std::uint64_t needed = bytes_of_node(missing, node);
  runtime::together(world, [&] { check_room(folder, needed); });
  const auto copy = [&](const ManifestFile& item) { copy_item(set_folder, folder, item); };
  if (!over_files(world, missing, copy, on_file)) return set_folder;
  // The manifest comes last: a folder with a manifest is whole.
  runtime::together(world, [&] {
    const std::string path = (fs::path{folder} / manifest_name).string();
    if (node.rank() != 0 || (fs::exists(path) && io::read_text(path) == text)) return;
    Copy whole{path};
    whole.append(std::as_bytes(std::span{text}));
    whole.finish();
  });
  return folder;
}

}  // namespace lockstep::data
