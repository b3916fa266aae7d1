#include "runtime/launcher_words.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::runtime {
namespace {

const std::string rule = std::string(74, '-') + "\n";

/// What is shown of `text`, the same whether it comes at once or byte by byte.
std::string shown(const std::string& text) {
  LauncherWords at_once, by_byte;
  std::string first = at_once.pass(text), second;
  first += at_once.release();
  for (const char c : text) second += by_byte.pass({&c, 1});
  second += by_byte.release();
  EXPECT_EQ(first, second);
  return first;
}

TEST(LauncherWords, LeavesOutWhatOpenMpi4SaysOfAFailedJob) {
  EXPECT_EQ(shown("error: no room\n  fix: make some\n" + rule +
                  "Primary job  terminated normally, but 1 process returned\n"
                  "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
                  rule + rule +
                  "mpiexec detected that one or more processes exited with non-zero status, thus causing\n"
                  "the job to be terminated. The first process to do so was:\n\n"
                  "  Process name: [[30751,1],0]\n  Exit code:    3\n" +
                  rule),
            "error: no room\n  fix: make some\n");
  EXPECT_EQ(shown(rule +
                  "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 3.\n\n"
                  "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
                  "You may or may not see output from other processes, depending on\n"
                  "exactly when Open MPI kills them.\n" +
                  rule +
                  "[vm:16797] 2 more processes have sent help message help-mpi-api.txt / mpi-abort\n"
                  "[vm:16797] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages\n"),
            "");
  EXPECT_EQ(shown("mpiexec: Forwarding signal 10 to job\n"), "");
}

TEST(LauncherWords, LeavesOutWhatOpenMpi5AndHydraSay) {
  EXPECT_EQ(shown(rule +
                  "prterun has exited due to process rank 1 with PID 0 on node vm calling\n"
                  "\"abort\". This may have caused other processes in the application to be\n"
                  "terminated by signals sent by prterun (as reported here).\n" +
                  rule),
            "");
  EXPECT_EQ(
      shown(rule +
            "prterun detected that one or more processes exited with non-zero status,\n"
            "thus causing the job to be terminated. The first process to do so was:\n\n"
            "   Process name: [prterun-vm-1@1,0]\n   Exit code:    2\n" +
            rule + "[vm:14259] PMIX ERROR: PMIX_ERR_UNREACH in file ../../../src/server/pmix_server.c at line 3184\n" +
            "[warn] Epoll MOD(1) on fd 22 failed. Old events were 6; read change was 0 (none)\n"),
      "");
  EXPECT_EQ(shown("application called MPI_Abort(MPI_COMM_WORLD, 3) - process 0\n"), "");
}

TEST(LauncherWords, KeepsWhatItDoesNotKnow) {
  const std::string unknown = rule + "There are not enough slots available in the system\n\n  to satisfy it\n" + rule;
  EXPECT_EQ(shown(unknown), unknown);
  EXPECT_EQ(shown("text without an end"), "text without an end");
  EXPECT_EQ(shown(rule + "a frame without an end\n"), rule + "a frame without an end\n");
  EXPECT_EQ(shown("mpirun noticed that process rank 1 exited on signal 9 (Killed).\n"),
            "mpirun noticed that process rank 1 exited on signal 9 (Killed).\n");
}

TEST(LauncherWords, KeepsOurMessagesEvenInsideAFrame) {
  EXPECT_EQ(shown(rule + "MPI_ABORT was invoked on rank 0\nerror: rank 1 died\n  fix: with errorcode 3\n" + rule),
            "error: rank 1 died\n  fix: with errorcode 3\n");
  EXPECT_EQ(shown("error: 'MPI_ABORT was invoked on rank' is no file\n"),
            "error: 'MPI_ABORT was invoked on rank' is no file\n");
}

TEST(LauncherWords, ShowsAWholeLineAtOnce) {
  LauncherWords words;
  EXPECT_EQ(words.pass("warning: a\npart"), "warning: a\n");
  EXPECT_EQ(words.release(), "part");
  EXPECT_EQ(words.pass("12 %\r"), "12 %\r");
}

}  // namespace
}  // namespace lockstep::runtime
