#include "data/write/spool.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "data/importers/text.hpp"
#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

/// Sets TMPDIR for a test.
class SpoolTest : public ImporterTest {
 protected:
  SpoolTest() { set(folder_.string()); }
  ~SpoolTest() override { before_ ? set(*before_) : static_cast<void>(::unsetenv("TMPDIR")); }

  static void set(const std::string& folder) { ::setenv("TMPDIR", folder.c_str(), 1); }

 private:
  static std::optional<std::string> current() {
    const char* folder = std::getenv("TMPDIR");
    return folder != nullptr ? std::optional<std::string>{folder} : std::nullopt;
  }

  const std::optional<std::string> before_ = current();
};

/// Files of this process cannot grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST_F(SpoolTest, GivesBackWhatWasAppendedAndHasNoName) {
  std::vector<std::uint32_t> written(700000);
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<std::uint32_t>(i * 2654435761U);
  const auto all = std::as_bytes(std::span{written});
  SpoolWriter writer;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  for (std::size_t at = 0, n = 1; at < all.size(); at += n, n = 3 * n + 1)
    writer.append(all.subspan(at, std::min(n, all.size() - at)));
  const Spool spool = std::move(writer).finish();
  ASSERT_EQ(spool.size(), all.size());
  for (const std::size_t at : {std::size_t{0}, (std::size_t{1} << 17) - 2, std::size_t{2} << 20, all.size() - 5}) {
    std::vector<std::byte> found(5);
    spool.read_at(at, found);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin() + static_cast<std::ptrdiff_t>(at))) << at;
  }
  std::vector<std::byte> beyond(6);
  EXPECT_THROW(spool.read_at(all.size() - 5, beyond), core::Error);
}

TEST_F(SpoolTest, NamesTheFolderItCannotUse) {
  set(path("none"));
  const auto error = core::thrown_by([] { SpoolWriter{}; });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), core::ExitCode::system);
  EXPECT_EQ(error->problem().where, path("none"));
  EXPECT_NE(error->problem().fix.find("TMPDIR"), std::string::npos);
}

TEST_F(SpoolTest, SaysWhenAFileMayNotGrow) {
  const FileSizeLimit limit{1 << 20};
  SpoolWriter writer;
  const std::vector<std::byte> data(3 << 20);
  const auto error = core::thrown_by([&] { writer.append(data); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), core::ExitCode::system);
  EXPECT_NE(error->problem().what.find("cannot write a temporary file"), std::string::npos);
  EXPECT_NE(error->problem().fix.find("ulimit -f unlimited"), std::string::npos) << error->problem().fix;
}

TEST_F(SpoolTest, LinesAreBounded) {
  const std::string file = write("f.csv", "1,2\n" + std::string(std::size_t{66} << 20, '1'));
  expect_usage([&] { open_csv(file, {.has_header = false}); }, {"64 MiB", "f.csv, line 2"});
}

}  // namespace
}  // namespace lockstep::data
