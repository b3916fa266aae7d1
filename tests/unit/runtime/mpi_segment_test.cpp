#include "runtime/watch/mpi_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

/// Makes and maps a file of this name.
class Mapped {
 public:
  explicit Mapped(const std::string& path) : path_{path} {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT_EQ(ftruncate(file, 4096), 0);
    memory_ = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
    close(file);
  }
  ~Mapped() {
    munmap(memory_, 4096);
    unlink(path_.c_str());
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

 private:
  std::string path_;
  void* memory_;
};

TEST(MpiSegment, IsThatOfThisRankAndRemovedWhereItIsStillTheSame) {
  const std::string stem = fmt::format("/dev/shm/vader_segment.test.{}", getpid());
  const Mapped own{stem + ".3"}, of_other{stem + ".13"};
  const MpiSegment segment = find_mpi_segment(3);
  EXPECT_EQ(std::string{segment.path.data()}, stem + ".3");
  EXPECT_EQ(std::string{find_mpi_segment(2).path.data()}, "");
  remove_if_left(find_mpi_segment(2));
  EXPECT_TRUE(fs::exists(stem + ".3") && fs::exists(stem + ".13"));

  // Another file of that name belongs to another job.
  fs::rename(stem + ".3", stem + ".mine");
  {
    const Mapped later{stem + ".3"};
    remove_if_left(segment);
    EXPECT_TRUE(fs::exists(stem + ".3"));
  }
  fs::rename(stem + ".mine", stem + ".3");
  remove_if_left(segment);
  EXPECT_FALSE(fs::exists(stem + ".3"));
  EXPECT_TRUE(fs::exists(stem + ".13"));
}

}  // namespace
}  // namespace lockstep::runtime
