// The library while the process ends.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <thread>

#include "tests/dispatch/support.h"
#include "tools/bench/idle_hip.h"

namespace {

// Calls may come from exit handlers, after the destructors of main()'s libraries.
TEST(ExitTest, IsQuietAtExit) {
  EXPECT_EXIT(
      {
        static support::Images* images = nullptr;
        atexit([] {
          const aotriton_attn_fwd_args args = support::Call();
          if (aotriton_attn_fwd(&args, idle_hip::StreamOf(0)) != 0 || idle_hip::Launches() < 2) _exit(3);
          delete images;
        });
        images = new support::Images;
        images->Install("gfx942");
        const aotriton_attn_fwd_args args = support::Call();
        if (aotriton_attn_fwd(&args, idle_hip::StreamOf(0)) != 0) _exit(4);
        std::thread([] {  // outlives main()
          const aotriton_attn_fwd_args late = support::Call();
          while (aotriton_attn_fwd(&late, idle_hip::StreamOf(0)) == 0) {
          }
        }).detach();
        exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

}  // namespace
