# frozen_string_literal: true

require 'set'
require_relative '../forms'
load 'more.rb'
autoload :Later, 'later'

# Documentation of a module.
module Forms
  LIMIT = 10

  # Documentation of a class.
  class Base < Struct.new(:first, :second)
    include Comparable
    extend Enumerable
    prepend Later

    attr_reader :name
    attr_accessor :value, :other

    def initialize(first, second = 2, *rest, key:, option: nil, **others, &block)
      @first = first # gone
      @second = second # gone, and more of it
    end

    def wrapped(
      first,
      second: LIMIT
    )
      puts 'this is gone'
      first + second # gone
    end

    def self.make(...)
      made = new(...) # gone
      made # gone, and more of it
    end

    class << self
      def inside
        puts 'this is gone'
        puts 'this is gone too'
      end
    end

    def question?
      puts 'this is gone'
      @first.nil? # gone
    end

    def value=(value)
      puts 'this is gone'
      @value = value # gone
    end

    def <=>(other)
      order = @first # gone
      order <=> other.first # gone
    end

    def [](index)
      puts 'this is gone'
      @values[index] # gone
    end

    def short = @first + 1

    def destructured((first, second), *)
      puts 'this is gone'
      first + second # gone
    end

    def ensured
      puts 'this is gone'
    rescue ArgumentError => error # gone
      puts error # gone
    ensure # gone
      puts 'this is gone'
    end

    def text
      puts 'this is gone'
      <<~GONE.gone
        this is gone
      GONE
    end

    private

    def hidden
      puts 'this is gone'
      puts 'this is gone too'
    end

    protected def inline(value)
      puts 'this is gone'
      value + 1 # gone, and more of it
    end

    alias_method :shown, :hidden
    alias other_name hidden
  end

  module_function

  def helper
    puts 'this is gone'
    puts 'this is gone too'
  end
end

def top_level(value)
  puts 'this is gone'
  value + 1 # gone, and more of it
end
