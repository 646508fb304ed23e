// Package forms has every form of import and signature.
package forms

import "fmt"
import m "math"
import . "strings"
import _ "embed"
import (
	"context"
	crypto "crypto/rand"

	// Dots and blanks in groups.
	. "sort"
	_ "net/http/pprof"
)

//go:embed forms.go
var source string

// Plain has no parameters.
func Plain() {
	fmt.Println("this is gone")
	fmt.Println("this is gone too")
}

// Named has names for its results.
func Named(first, second int, rest ...string) (sum int, err error) {
	sum = first + second // gone
	return sum, nil // gone
}

func Wrapped(
	ctx context.Context,
	callback func(int) (string, error),
) (
	map[string][]int,
	error,
) {
	callback(len(source)) // gone
	return nil, ctx.Err() // gone
}

// Map is generic.
func Map[T any, U comparable](values []T, each func(T) U) []U {
	var out []U // gone
	return out // gone, and more of it
}

func (s Square) Area() float64 {
	side := s.Side // gone
	return m.Abs(side * side) // gone
}

func (s *Square) Scale(by float64) *Square {
	s.Side *= by // gone
	return s // gone, and more of it
}

func (l *List[T]) Push(value T) {
	l.items = append(l.items, value) // gone
	Sort(l) // gone
}

func init() {
	crypto.Reader.Read(nil) // gone
	ToUpper("gone")
}

var Handler = func(name string) string {
	name = ToLower(name) // gone
	return name // gone, and more of it
}

// External is written elsewhere.
func External(a int) int

type Square struct {
	Side float64 `json:"side"`
	List[int]
}

type List[T any] struct{ items []T }

type Shape interface {
	fmt.Stringer
	Area() float64
	~int | ~string
}

type (
	Alias    = Square
	Callback func(ctx context.Context) error
)

const (
	One = iota
	Two
)
