// What we read from NCCL's log, and that NCCL still writes it.
#include "comm/nccl/library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>

namespace lockstep::comm::nccl {
namespace {

TEST(NcclLog, TellsWhatItConnectedBy) {
  const Connection connection = read_connection(
      "n0:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>\n"
      "n0:7:7 [0] NCCL INFO Using network IB\n"
      "n0:7:7 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels\n"
      "n0:7:7 [0] NCCL INFO Using network AWS Libfabric\n"
      "n0:7:7 [0] NCCL INFO 24 coll channels, 24 collnet channels\n");
  EXPECT_EQ(connection.network, "AWS Libfabric");
  EXPECT_EQ(connection.n_channels, 24);
}

TEST(NcclLog, OfNothingTellsNothing) {
  for (const char* const text :
       {"", "Using", "Using network ", " coll channels", "x coll channels", "99999999999 coll channels"}) {
    const Connection connection = read_connection(text);
    EXPECT_EQ(connection.network, "") << text;
    EXPECT_EQ(connection.n_channels, 0) << text;
  }
}

// The library is the one that this program is linked with.
TEST(NcclLog, HasTheWordsOfTheLibrary) {
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&ncclGetVersion), &library), 0);
  const core::Descriptor file{open(library.dli_fname, O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  ASSERT_EQ(fstat(file.get(), &status), 0) << library.dli_fname;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(bytes, MAP_FAILED);
  const std::string_view content{static_cast<const char*>(bytes), size};
  for (const std::string_view words : {"Using network %s", "%d coll channels"})
    EXPECT_NE(
        std::search(content.begin(), content.end(), std::boyer_moore_horspool_searcher(words.begin(), words.end())),
        content.end())
        << words << " in " << library.dli_fname;
  munmap(bytes, size);
}

}  // namespace
}  // namespace lockstep::comm::nccl
