// The tensors of an .npz archive, as numpy.savez writes it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "checkpoint/tensors.hpp"
#include "data/importers/npy_header.hpp"
#include "data/importers/zip_archive.hpp"
#include "io/file.hpp"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view member_ending = ".npy";

/// Returns the result of `step`; throws core::Error (system) after a signal.
template <class Step>
auto uninterrupted(Step&& step) {
  try {
    return step();
  } catch (const data::Interrupted&) {
    core::fail_system("stopped by a signal while an archive was unpacked");
  }
}

[[noreturn]] void refuse_archive(const NamedFile& named, const std::string& what) {
  refuse(named, what, "arrays as numpy.savez stores them", "write it again with numpy.savez");
}

/// torch.save writes an archive with a pickle that describes the other members.
bool is_pickle(const std::string& member) { return member == "data.pkl" || member.ends_with("/data.pkl"); }

/// An array, and the bytes of its member.
struct Member {
  StoredTensor tensor{};
  std::uint64_t header_bytes = 0;
  std::uint64_t bytes = 0;
};

/// Refuses a member that claims more than a file of `file_bytes` can hold, or whose size does not match its array.
Member read_member(const NamedFile& named, const data::ZipArchive& archive, const std::string& member,
                   std::uint64_t file_bytes) {
  constexpr std::uint64_t most_deflated = 1032;  // per byte
  const data::Input head = uninterrupted([&] { return archive.head(member, data::longest_npy_header); });
  const data::NpyHeader header = data::read_npy_header(head, true);
  Member found{.tensor = {{member.substr(0, member.size() - member_ending.size()), header.shape}, header.dtype},
               .header_bytes = header.bytes};
  if (header.word_bytes > 0) found.tensor.dtype.reset();
  const auto n = find_bytes(header.shape, header.word_bytes > 0 ? header.word_bytes : core::size_of(header.dtype));
  if (!n || __builtin_add_overflow(*n, header.bytes, &found.bytes) || found.bytes != archive.member_bytes(member) ||
      found.bytes / most_deflated > file_bytes)
    refuse_archive(named, fmt::format("has a number of bytes in {} that does not match its shape", member));
  return found;
}

void read_array(const NamedFile& named, const data::ZipArchive& archive, const Member& member,
                std::span<float> values) {
  read_floats(named, member.tensor, values, [&](std::span<std::byte> bytes) {
    const data::Input input =
        uninterrupted([&] { return archive.unpack(member.tensor.spec.name + std::string{member_ending}); });
    if (input.size() != member.bytes)
      refuse_archive(named,
                     fmt::format("has {} bytes of {}, not {}", input.size(), member.tensor.spec.name, member.bytes));
    input.read_at(member.header_bytes, bytes);
  });
}

}  // namespace

TensorSource open_npz_tensors(const NamedFile& named) {
  const auto archive = std::make_shared<data::ZipArchive>(named.path);
  const std::uint64_t file_bytes = io::File{named.path}.size().value;
  std::vector<Member> members;
  const std::vector<std::string> names = archive->member_names();
  if (std::ranges::any_of(names, is_pickle)) refuse_pickle(named);
  for (const std::string& name : names)
    if (name.ends_with(member_ending)) members.push_back(read_member(named, *archive, name, file_bytes));
  const auto by_name = [](const Member& member) -> const std::string& { return member.tensor.spec.name; };
  std::ranges::sort(members, {}, by_name);
  if (const auto twice = std::ranges::adjacent_find(members, {}, by_name); twice != members.end())
    refuse_archive(named, fmt::format("has {} twice", by_name(*twice)));
  TensorSource source{.path = named.path};
  for (const Member& member : members) source.tensors.push_back(member.tensor);
  source.read = [named, archive, members = std::move(members)](std::size_t i, std::span<float> values) {
    read_array(named, *archive, members.at(i), values);
  };
  return source;
}

}  // namespace lockstep::checkpoint
