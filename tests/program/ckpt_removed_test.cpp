// A run that keeps one checkpoint removes it while a command reads it, at every file that the command opens: that is no
// damage. The command takes the one that has come meanwhile.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <filesystem>
#include <functional>
#include <string_view>

#include "checkpoint/folder.hpp"
#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace {

/// What happens when a file of this name is opened next, before it is.
std::string_view awaited;
std::function<void()>* happening = nullptr;

}  // namespace

/// Takes the place of the C library's.
extern "C" int openat(int folder, const char* name, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (happening != nullptr && name == awaited) (*std::exchange(happening, nullptr))();
  return static_cast<int>(syscall(SYS_openat, folder, name, flags, mode));
}

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_told;
using support::has;
using support::lockstep_on;
using support::words_of;

class CkptRemoved : public support::InFolder {
 protected:
  CkptRemoved() {
    support::expect_done(lockstep_on, "train toy 3 --synthetic-samples 64 --save-every 1 --keep 9 --run-dir before");
    fs::remove("before/checkpoints/best");
    fs::remove_all("before/checkpoints/step-000000002");
  }

  /// Runs `line` beside a run after step 4, which saves step 6 and removes step 4 when file `name` is opened.
  static Ended run_beside(const std::string& name, const std::string& line) {
    for (const char* const folder : {"r", "next", "s", "w.npz"}) fs::remove_all(folder);
    fs::copy("before", "r", fs::copy_options::recursive);
    fs::rename("r/checkpoints/step-000000006", "next");
    std::function<void()> save = [] {
      fs::rename("next", "r/checkpoints/step-000000006");
      checkpoint::remove_checkpoint("r/checkpoints/step-000000004");
    };
    awaited = name;
    happening = &save;
    Ended ended = lockstep_on(words_of(line));
    EXPECT_EQ(happening, nullptr) << name << " was not opened";
    happening = nullptr;
    EXPECT_FALSE(fs::exists("r/checkpoints/step-000000004"));
    return ended;
  }
};

constexpr const char* names[] = {"DONE", "index.json", "rank-00000.h5"};

TEST_F(CkptRemoved, IsNotToldAsDamage) {
  for (const std::string name : names)
    for (const std::string line :
         {"ckpt ls r", "ckpt verify r", "ckpt cat r", "ckpt diff r before", "ckpt diff before r",
          "ckpt export r --out w.npz", "train toy 4 --synthetic-samples 64 --init-from r --run-dir s",
          "train toy 4 --synthetic-samples 64 --resume r --run-dir s"}) {
      SCOPED_TRACE(name + " in " + line);
      const Ended ended = run_beside(name, line);
      // Whose files were open by then has read what there was.
      const bool may_be_old = name == "rank-00000.h5" || line.starts_with("ckpt diff") || has(line, "--init-from");
      EXPECT_TRUE(ended.exit_code == 0 || (may_be_old && line.starts_with("ckpt diff"))) << ended.out << ended.err;
      EXPECT_TRUE(has(ended.out + ended.err, "step-000000006") || may_be_old) << ended.out << ended.err;
      for (const std::string word : {"damaged", "incomplete", "; skipped", "cannot"})
        EXPECT_FALSE(has(ended.out + ended.err, word)) << ended.out << ended.err;
    }
}

TEST_F(CkptRemoved, VerifyTellsWhatIsGoneAndReadsWhatHasCome) {
  const Ended ended = run_beside("DONE", "ckpt verify r");
  expect_told(ended, 0,
              {"checkpoint 'r/checkpoints/step-000000004' is gone: its run has removed it meanwhile\n",
               "r/checkpoints/step-000000006 is whole: "});
}

TEST_F(CkptRemoved, TheOneThatWasNamedIsToldToBeGone) {
  const std::string path = "r/checkpoints/step-000000004";
  for (const std::string line :
       {"ckpt cat ", "ckpt export --out w.npz ", "train toy 4 --synthetic-samples 64 --run-dir s --resume "}) {
    const Ended ended = run_beside("DONE", line + path);
    expect_told(ended, 2, {"checkpoint '" + path + "' is gone: its run has removed it meanwhile", "fix: "});
    EXPECT_EQ(ended.err.find("error: "), ended.err.rfind("error: ")) << ended.err;
  }
}

}  // namespace
}  // namespace lockstep::training
