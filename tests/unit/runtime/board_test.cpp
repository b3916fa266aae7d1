#include "runtime/watch/board.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "support/text.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

class BoardTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "lockstep-board-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::unique_ptr<Board> join(int local_rank, int n_local_ranks) const {
    return Board::join({"test", "job", local_rank, n_local_ranks, local_rank, n_local_ranks}, folder_);
  }
  [[nodiscard]] auto n_files() const {
    return std::distance(fs::directory_iterator{folder_}, fs::directory_iterator{});
  }

  std::string folder_;
};

TEST_F(BoardTest, IsSharedAndItsFileGoesWhenAllAreThere) {
  const auto first = join(0, 2);
  ASSERT_TRUE(first);
  EXPECT_EQ(n_files(), 1);
  const auto second = join(1, 2);
  ASSERT_TRUE(second);
  EXPECT_EQ(n_files(), 0);
  second->mine().position.store(77);
  EXPECT_EQ(first->slots()[1].position.load(), 77);
  EXPECT_EQ(first->slots()[1].rank.load(), 1);
  EXPECT_EQ(pid_of(first->mine().owner.load()), getpid());
}

TEST_F(BoardTest, TheLastToLeaveRemovesTheFileOfAnIncompleteJob) {
  auto first = join(0, 3);
  auto second = join(1, 3);
  first.reset();
  EXPECT_EQ(n_files(), 1);
  second.reset();
  EXPECT_EQ(n_files(), 0);
}

TEST_F(BoardTest, SlotsAreTakenInTurnWhereTheLocalRankIsUnknown) {
  const LauncherHint hint{"test", "job", {}, {}, {}, {}};
  const auto first = Board::join(hint, folder_);
  const auto second = Board::join(hint, folder_);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(&first->mine(), &first->slots()[0]);
  EXPECT_EQ(&second->mine(), &second->slots()[1]);
  EXPECT_EQ(first->mine().rank.load(), -1);
}

TEST_F(BoardTest, OneReportOnly) {
  const auto first = join(0, 2);
  const auto second = join(1, 2);
  EXPECT_TRUE(second->claim_report());
  EXPECT_FALSE(first->claim_report());
  EXPECT_FALSE(first->is_report_out());
  second->publish_report();
  EXPECT_TRUE(first->is_report_out());
}

TEST_F(BoardTest, AFileOfADeadJobIsCleared) {
  const pid_t child = fork();
  if (child == 0) {
    auto board = join(1, 3);
    if (!board->claim_report()) _exit(1);
    board.release();  // ends without leaving
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(n_files(), 1);

  const auto board = join(0, 3);
  ASSERT_TRUE(board);
  EXPECT_EQ(board->slots()[1].owner.load(), 0);
  EXPECT_FALSE(find_owner(board->slots()[1]));
  EXPECT_TRUE(board->claim_report());
}

TEST_F(BoardTest, TheNextJobRemovesWhatDeadJobsHaveLeft) {
  const auto age = [&](std::chrono::minutes minutes) {
    for (const auto& entry : fs::directory_iterator{folder_})
      fs::last_write_time(entry, fs::file_time_type::clock::now() - minutes);
  };
  const auto next_job = [&](const char* key) { return Board::join({"test", key, 0, 1, 0, 1}, folder_); };
  const pid_t child = fork();
  if (child == 0) {
    join(1, 3).release();  // ends without leaving
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(next_job("a"));
  EXPECT_EQ(n_files(), 1);  // too young to decide
  age(std::chrono::minutes{2});
  EXPECT_TRUE(next_job("b"));
  EXPECT_EQ(n_files(), 0);

  const auto alive = join(0, 3);
  age(std::chrono::minutes{2});
  EXPECT_TRUE(next_job("c"));
  EXPECT_EQ(n_files(), 1);
}

TEST_F(BoardTest, AReusedPidIsNotTheOldOwner) {
  const auto board = join(0, 2);
  ASSERT_TRUE(find_owner(board->mine()));
  board->slots()[1].owner.store(make_process_key(getpid(), 12345));
  EXPECT_FALSE(find_owner(board->slots()[1]));
}

TEST_F(BoardTest, IsNotThereWithoutALauncherOrAFolder) {
  EXPECT_FALSE(Board::join({"", "job", 0, 1, 0, 1}, folder_));
  EXPECT_FALSE(Board::join({"test", "job", 0, 1, 0, 1}, folder_ + "/missing"));
}

TEST_F(BoardTest, DoesNotFollowALinkOfAnother) {
  const std::string target = folder_ + "/precious";
  std::ofstream{target} << "data";
  {
    const auto board = join(0, 2);
    ASSERT_TRUE(board);
  }
  // A run of the same job shows the name; now a link with that name exists.
  const auto board = join(0, 2);
  fs::path name;
  for (const auto& entry : fs::directory_iterator{folder_})
    if (entry.path() != target) name = entry.path();
  fs::remove(name);
  fs::create_symlink(target, name);
  EXPECT_FALSE(join(1, 2));
  EXPECT_EQ(fs::file_size(target), 4);

  // The first process of the node reports it.
  const auto expect = [&](const std::string& what) {
    const auto error = core::complaint_of([&] { static_cast<void>(join(0, 2)); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), core::ExitCode::system);
    EXPECT_TRUE(support::has(error->what(), "'" + name.string() + "' is " + what + ": ")) << error->what();
    EXPECT_FALSE(join(1, 2));
  };
  expect("a link");
  EXPECT_EQ(fs::file_size(target), 4);
  fs::remove(name);
  fs::create_directory(name);
  expect("a folder");
  fs::remove(name);
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
  expect("a pipe or device");
  fs::remove(name);
  std::ofstream{name} << "";
  if (chown(name.c_str(), 54321, 54321) != 0) return;  // only root can test more
  expect("a file of user 54321");
}

}  // namespace
}  // namespace lockstep::runtime
