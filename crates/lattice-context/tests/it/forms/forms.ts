import 'side-effect';
import type { Kind } from './kind';
import whole, { type One, two as renamed } from './some';
import * as all from './all';
import older = require('older');
export type { Kind } from './kind';
export * from './others';

/** Documentation of a type. */
export type Mapped<T> = { readonly [K in keyof T]?: T[K] extends string ? K : never };

export interface Shape<T = unknown> extends One {
  readonly area: number;
  method?(value: T): void;
  new (value: T): Shape<T>;
  (value: T): string;
  [key: string]: unknown;
}

export enum Colour {
  Red = 'red',
}

declare module 'other' {
  export function declared(value: number): string;
}

declare function outside(value: number): string;

export function overloaded(value: string): string;
export function overloaded(value: number): number;
export function overloaded(value: any): any {
  console.log(value); // gone
  return value; // gone, and more of it
}

export async function wrapped<T extends Shape, const U>(
  this: Window,
  first: T,
  { second = 1, ...rest }: { second?: number } = {},
  ...others: U[]
): Promise<Map<T, U>> {
  console.log(first, second, rest); // gone
  return all.later(others); // gone
}

function isOne(value: unknown): value is One {
  console.log(value); // gone
  return true; // gone, and more of it
}

function asserts(value: unknown): asserts value {
  console.log(value); // gone
  older.check(value); // gone
}

export const arrow = <T,>(value: T): T => {
  console.log(value); // gone
  return value; // gone, and more of it
};

@decorated({ name: 'a' })
export abstract class Forms<T> extends whole.Base<T> implements Shape, One {
  declare readonly area: number;
  private static readonly count?: number = 0;

  constructor(
    private readonly first: T,
    public second = 2,
  ) {
    super(first); // gone
    console.log(second); // gone
  }

  @logged()
  protected override async method(@inject() value: T): Promise<void> {
    console.log(value); // gone
    await renamed(value); // gone
  }

  get value(): T {
    console.log('this is gone');
    return this.first; // gone
  }

  set value(value: T) {
    console.log('this is gone');
    this.second = 1; // gone
  }

  abstract bodiless(): void;

  *[Symbol.iterator](): Iterator<T> {
    yield this.first; // gone
    yield this.first; // gone
  }

  private bound = (value: T): T => {
    console.log(value); // gone
    return value; // gone, and more of it
  };
}

namespace Inside {
  export function nested(): Kind {
    console.log('this is gone');
    return 'a'; // gone, and more of it
  }
}
