extern alias Older;
global using System.Text;
using System;
using static System.Math;
using Numbers = System.Collections.Generic.List<int>;

[assembly: CLSCompliant(true)]

namespace Example.Forms
{
    using System.Linq;

    public delegate TResult Callback<in T, out TResult>(T value, ref int count);

    public enum Colour : byte { Red, Green = 2 }

    /// <summary>Documentation of a class.</summary>
    [Serializable, Obsolete("a")]
    public abstract partial class Forms<T> : Base, IFirst<T>
        where T : class, IComparable<T>, new()
    {
        private const int Limit = 10;
        public event EventHandler Changed;

        static Forms()
        {
            Console.WriteLine("this is gone");
            Console.WriteLine("this is gone too");
        }

        public Forms(int first, params string[] rest) : base(first)
        {
            Console.WriteLine(first); // gone
            Console.WriteLine(rest); // gone
        }

        ~Forms()
        {
            Console.WriteLine("this is gone");
            Console.WriteLine("this is gone too");
        }

        public int Automatic { get; private set; } = 1;

        public int Computed => Automatic + Limit;

        public string Full
        {
            get
            {
                var text = "gone";
                return text; // gone, and more of it
            }
            protected set
            {
                Console.WriteLine(value); // gone
                Automatic = value.Length; // gone
            }
        }

        public T this[int index, string key]
        {
            get
            {
                Console.WriteLine(key); // gone
                return default; // gone
            }
        }

        public event EventHandler Custom
        {
            add
            {
                Changed += value; // gone
                Console.WriteLine("gone");
            }
            remove
            {
                Changed -= value; // gone
                Console.WriteLine("gone");
            }
        }

        [Pure]
        public virtual async Task<List<U>> Method<U>(
            in T first,
            out int second,
            U third = default,
            [CallerMemberName] string name = null)
            where U : struct
        {
            second = Limit; // gone
            return await Task.FromResult(new List<U>()); // gone
        }

        public abstract void Bodiless(int? maybe);

        public int Short(int value) => value + 1;

        public static Forms<T> operator +(Forms<T> one, Forms<T> other)
        {
            Console.WriteLine(other); // gone
            return one; // gone, and more of it
        }

        public static implicit operator int(Forms<T> forms)
        {
            var value = forms.Automatic; // gone
            return value; // gone, and more of it
        }

        void IFirst<T>.Explicit()
        {
            Console.WriteLine("this is gone");
            Console.WriteLine("this is gone too");
        }

        private readonly Func<int, int> lambda = value =>
        {
            var more = value + 1; // gone
            return more; // gone, and more of it
        };

        private class Inner
        {
            internal ref readonly int Reference(ref int value)
            {
                Console.WriteLine(value); // gone
                return ref value; // gone
            }
        }
    }

    public interface IFirst<T>
    {
        int Property { get; }
        void Explicit();
        void Default()
        {
            Console.WriteLine("this is gone");
            Console.WriteLine("this is gone too");
        }
    }

    public readonly struct Point
    {
        public override string ToString()
        {
            var text = "gone";
            return text; // gone, and more of it
        }
    }

    public record Person(string First, string Last)
    {
        public string Whole()
        {
            var text = First + Last; // gone
            return text; // gone, and more of it
        }
    }
}
