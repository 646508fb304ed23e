package com.example.forms;

import java.util.List;
import java.util.function.*;
import static java.lang.Math.max;
import static java.util.Map.*;

/** Documentation of a class. */
@Deprecated(since = "1")
public abstract class Forms<T extends Comparable<T> & Runnable> extends Base implements First, Second<T> {
    private static final int LIMIT = 10;

    static {
        System.setProperty("a", "b");
    }

    public Forms() {
        super(); // gone
        this.prepare(LIMIT); // gone
    }

    protected <U> Forms(final U first, int... rest) throws java.io.IOException, InterruptedException {
        this(); // gone
        System.out.println(first); // gone
    }

    /** Documentation of a method. */
    @Override
    @SuppressWarnings({"unchecked", "rawtypes"})
    public synchronized <U extends T, V> List<? super U> method(
            @Nullable final U first,
            int[] second,
            V... rest)
            throws Exception {
        int largest = max(1, second.length); // gone
        return List.of(first); // gone
    }

    abstract void bodiless(String name);

    native int outside();

    static int[][] arrays(int[]... values) {
        int[][] copy = values.clone(); // gone
        return copy; // gone, and more of it
    }

    final Function<Integer, Integer> lambda = (value) -> {
        int more = value + 1; // gone
        return more; // gone, and more of it
    };

    final Runnable anonymous = new Runnable() {
        @Override
        public void run() {
            System.out.println("gone");
            System.out.println("gone too");
        }
    };

    public static final class Inner extends Forms<Inner> {
        void nested() {
            System.out.println("gone");
            System.out.println("gone too");
        }
    }

    enum Kind implements Supplier<String> {
        FIRST("a") {
            @Override
            public String get() {
                String text = "gone";
                return text; // gone
            }
        },
        SECOND("b");

        private final String text;

        Kind(String text) {
            this.text = text; // gone
            System.out.println("gone");
        }

        public String get() {
            String copy = this.text; // gone
            return copy; // gone
        }
    }

    interface Shape {
        double area();

        default double twice() {
            double once = area(); // gone
            return once + once; // gone
        }

        static Shape of(double side) {
            double area = side * side; // gone
            return () -> area; // gone
        }
    }

    record Point<N extends Number>(N x, N y) implements Comparable<Point<N>> {
        Point {
            System.out.println("gone");
            System.out.println("gone too");
        }

        public int compareTo(Point<N> other) {
            int order = this.x.intValue(); // gone
            return order; // gone, and more of it
        }
    }

    sealed interface Sealed permits One, Two {}

    @interface Annotation {
        String value() default "";
        int[] numbers();
    }
}
