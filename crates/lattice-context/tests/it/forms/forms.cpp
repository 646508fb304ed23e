#include <vector>
#include "forms.hpp"
using namespace std;
using std::vector;
namespace short_name = some::long_name;
template <typename T> using pointer_to = T *;
typedef unsigned long size_type;

/// Documentation of a function.
[[nodiscard]] constexpr int plain(int first, int second = 2) noexcept {
  int sum = first + second;  // gone
  return sum;  // gone, and more of it
}

auto trailing(const vector<int> &values) -> decltype(values.size()) {
  auto size = values.size();  // gone
  return size;  // gone, and more of it
}

template <typename T, size_type N = 4, typename... Rest>
  requires std::integral<T>
T generic(const T (&values)[N], Rest &&...rest) {
  T first = values[0];  // gone
  return first;  // gone, and more of it
}

template <>
int specialised<int>(int value) {
  int more = value + 1;  // gone
  return more;  // gone, and more of it
}

template <typename T>
concept Addable = requires(T a, T b) { a + b; };

namespace outer::inner {

enum class Colour : unsigned char { Red, Green };

class Base {
 public:
  virtual ~Base() = default;
  Base(const Base &) = delete;
  virtual int pure() const = 0;
};

class Forms final : public Base, private vector<int> {
 public:
  explicit Forms(int first, int second) : first_(first), second_{second} {
    prepare(first_);  // gone
    prepare(second_);  // gone
  }

  ~Forms() override {
    release(first_);  // gone
    release(second_);  // gone
  }

  Forms &operator=(Forms &&other) noexcept {
    first_ = other.first_;  // gone
    return *this;  // gone, and more of it
  }

  explicit operator bool() const {
    int both = first_ + second_;  // gone
    return both != 0;  // gone
  }

  int operator()(int value) const volatile & {
    int more = value + 1;  // gone
    return more;  // gone, and more of it
  }

  static Forms *make() {
    Forms *made = nullptr;  // gone
    return made;  // gone, and more of it
  }

  friend bool operator==(const Forms &one, const Forms &other) {
    bool same = one.first_ == other.first_;  // gone
    return same;  // gone, and more of it
  }

  template <typename U>
  U member(U value) {
    U copy = value;  // gone
    return copy;  // gone, and more of it
  }

  int pure() const override;

 private:
  int first_ = 1;
  int second_;
};

int Forms::pure() const {
  int sum = first_ + second_;  // gone
  return sum;  // gone, and more of it
}

struct Plain {
  int field;
  void method() {
    prepare(field);  // gone
    release(field);  // gone
  }
};

union Either {
  int number;
  float fraction;
};

}  // namespace outer::inner

long double operator""_km(long double value) {
  long double metres = value * 1000;  // gone
  return metres;  // gone, and more of it
}

auto lambda = [captured = 1](int value) mutable -> int {
  int more = value + captured;  // gone
  return more;  // gone, and more of it
};

extern "C" {
int for_c(int value) {
  int more = value + 1;  // gone
  return more;  // gone, and more of it
}
}

#if defined(LIMIT)
static void in_condition() {
  prepare(LIMIT);  // gone
  release(LIMIT);  // gone
}
#endif
