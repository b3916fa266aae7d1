// A process that has run out of something: no file is to blame.
#include "core/shortage.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "core/pending.hpp"
#include "core/print.hpp"
#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "support/sanitized.hpp"
#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

using core::ExitCode;

TEST(Shortage, OfDescriptorsIsOfTheSystem) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer needs descriptors";
  const TemporaryFolder folder;
  Hdf5File::create(folder / "f.h5").close();
  const std::vector<std::string> words{folder / "f.h5", "Too many open files", "limit of open files", "ulimit -n"};
  const FewDescriptors none{0};
  expect_error([&] { File{folder / "f.h5"}; }, ExitCode::system, words);
  expect_error([&] { core::write_whole(folder / "f.h5", {}); }, ExitCode::system, words);
}

// Hdf5File::open first examines the file, and then the library opens it.
TEST(Shortage, OfDescriptorsIsNoDamageOfAnHdf5File) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer needs descriptors";
  const TemporaryFolder folder;
  Hdf5File::create(folder / "f.h5").close();
  const FewDescriptors one{1};
  expect_error([&] { Hdf5File::open(folder / "f.h5"); }, ExitCode::system,
               {folder / "f.h5", "Too many open files", "ulimit -n"});
}

TEST(Shortage, OtherErrorsAreNone) {
  for (const int error : {ENOENT, EACCES, EIO}) EXPECT_NO_THROW(core::refuse_shortage("cannot read", "f", error));
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT})
    expect_error([&] { core::refuse_shortage("cannot read", "f", error); }, ExitCode::system,
                 {"cannot read: ", "(f)", "fix: "});
  expect_error([] { throw core::lost_stdout(EFBIG); }, ExitCode::system, {"stdout: File too large", "ulimit -f"});
  expect_error([] { throw core::lost_stdout(ENOSPC); }, ExitCode::system, {"stdout: No space left", "redirect it"});
}

TEST(Shortage, IsRecognisedInWords) {
  EXPECT_EQ(core::shortage_in("unable to open file: Too many open files"), EMFILE);
  EXPECT_EQ(core::shortage_in("memory allocation failed for raw data chunk"), ENOMEM);
  EXPECT_EQ(core::shortage_in("unable to open file: No such file or directory"), 0);
}

TEST(Shortage, OfALimitIsFixedByRaisingIt) {
  const std::string otherwise = "free space";
  EXPECT_NE(core::fix_of_limit("cannot write: File too large", otherwise).find("ulimit -f"), std::string::npos);
  EXPECT_NE(core::fix_of_limit("HDF5 cannot open: Too many open files", otherwise).find("ulimit -n"),
            std::string::npos);
  for (const char* const reason : {"No space left on device", "Disk quota exceeded", "Input/output error", ""})
    EXPECT_EQ(core::fix_of_limit(reason, otherwise), otherwise) << reason;
}

}  // namespace
}  // namespace lockstep::io
