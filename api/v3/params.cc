// The constructor that callers built against AOTriton's headers import. It bears no version, and
// their struct has 768 bytes (0.10, 0.11) or 832 (0.12, 0.13): it may fill only the bytes that all
// of them have. Zeros are null views, kUnknown, VarlenType::None in each layout; what lies beyond
// was never initialised by the constructors of those releases either.
//
// The class is declared anew, as bytes, because the header's constructor is inline and would fill
// the whole struct of today.
#include <aotriton/config.h>

#include <cstring>

namespace AOTRITON_NS::v3::flash {

struct AOTRITON_API attn_fwd_params {
  unsigned char common[768];
  attn_fwd_params();
};

attn_fwd_params::attn_fwd_params() { memset(common, 0, sizeof(common)); }

}  // namespace AOTRITON_NS::v3::flash
