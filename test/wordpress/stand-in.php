<?php
// WordPress as far as the plug-in calls it: its answers are given, its hooks run, its HTTP is real. Standard input is one scene as JSON,
// standard output what each of its steps returned.

namespace Reelgate {
	/** The clock of the scene. */
	function time() {
		return $GLOBALS['scene']['nowS'] ?? \time();
	}
}

namespace {
	const ABSPATH           = '/';
	const HOUR_IN_SECONDS   = 3600;
	const MINUTE_IN_SECONDS = 60;

	$scene = json_decode( stream_get_contents( STDIN ), true );
	$hooks      = array();
	$done       = array();
	$shortcodes = array();
	$scene += array( 'options' => array(), 'users' => array(), 'posts' => array() );

	final class Answered extends Exception {
		public $body;
		public $status;
		public function __construct( $body, $status ) {
			parent::__construct();
			$this->body   = $body;
			$this->status = $status;
		}
	}

	class WP_Error {
		private $code;
		private $message;
		private $data;
		public function __construct( $code, $message, $data = null ) {
			list( $this->code, $this->message, $this->data ) = array( $code, $message, $data );
		}
		public function get_error_message() {
			return $this->message;
		}
		public function get_error_data() {
			return $this->data;
		}
	}

	final class WP_Block_Type_Registry {
		public static $blocks = array();
		public static function get_instance() {
			return new self();
		}
		public function is_registered( $name ) {
			return isset( self::$blocks[ $name ] );
		}
		public function get_registered( $name ) {
			return self::$blocks[ $name ] ?? null;
		}
		public function unregister( $name ) {
			unset( self::$blocks[ $name ] );
		}
	}

	function add_action( $name, $call ) {
		$GLOBALS['hooks'][ $name ][] = $call;
	}
	function add_filter( $name, $call ) {
		add_action( $name, $call );
	}
	function do_action( $name, ...$values ) {
		$GLOBALS['done'][] = array( $name, $values );
		foreach ( $GLOBALS['hooks'][ $name ] ?? array() as $call ) {
			$call( ...$values );
		}
	}
	function apply_filters( $name, $value, ...$others ) {
		if ( isset( $GLOBALS['scene']['filters'][ $name ] ) ) {
			$value = $GLOBALS['scene']['filters'][ $name ];
		}
		foreach ( $GLOBALS['hooks'][ $name ] ?? array() as $call ) {
			$value = $call( $value, ...$others );
		}
		return $value;
	}

	function get_option( $name, $default = false ) {
		return $GLOBALS['scene']['options'][ $name ] ?? $default;
	}
	function add_option( $name, $value ) {
		$GLOBALS['scene']['options'] += array( $name => $value );
	}
	function update_option( $name, $value ) {
		$GLOBALS['scene']['options'][ $name ] = $value;
	}
	function get_transient( $name ) {
		return $GLOBALS['scene']['transients'][ $name ] ?? false;
	}
	function set_transient( $name, $value ) {
		$GLOBALS['scene']['transients'][ $name ] = $value;
	}
	function wp_cache_delete() {}
	function add_settings_error( $page, $code, $sentence ) {
		$GLOBALS['done'][] = array( $code, array( $sentence ) );
	}
	function check_ajax_referer() {
		if ( empty( $GLOBALS['scene']['hasNonce'] ) ) {
			throw new Answered( '-1', 403 );
		}
	}

	function user_in_scene() {
		return $GLOBALS['scene']['users'][ $GLOBALS['scene']['signedInAs'] ?? '' ] ?? null;
	}
	function get_current_blog_id() {
		return $GLOBALS['scene']['site'] ?? 1;
	}
	function get_current_user_id() {
		return (int) ( $GLOBALS['scene']['signedInAs'] ?? 0 );
	}
	function get_userdata( $id ) {
		$user = $GLOBALS['scene']['users'][ (string) $id ] ?? null;
		return $user ? (object) ( array( 'ID' => $id ) + $user ) : false;
	}
	function get_user_by( $field, $value ) {
		foreach ( $GLOBALS['scene']['users'] as $id => $user ) {
			if ( $user['user_email'] === $value ) {
				return get_userdata( $id );
			}
		}
		return false;
	}
	function current_user_can( $capability ) {
		return in_array( $capability, user_in_scene()['may'] ?? array(), true );
	}
	function user_can( $user, $capability, $post = null ) {
		return in_array( $capability, $GLOBALS['scene']['users'][ (string) $user ]['may'] ?? array(), true );
	}
	function get_user_meta( $user, $key = '', $single = false ) {
		$all = $GLOBALS['scene']['meta'][ $user ] ?? array();
		return '' === $key ? $all : ( $all[ $key ] ?? '' );
	}
	function add_user_meta( $user, $key, $value ) {
		if ( isset( $GLOBALS['scene']['meta'][ $user ][ $key ] ) ) {
			return false;
		}
		$GLOBALS['scene']['meta'][ $user ][ $key ] = $value;
		return true;
	}
	function delete_user_meta( $user, $key ) {
		unset( $GLOBALS['scene']['meta'][ $user ][ $key ] );
	}
	function get_the_ID() {
		return $GLOBALS['scene']['post'] ?? false;
	}
	function get_post( $id ) {
		return isset( $GLOBALS['scene']['posts'][ $id ] ) ? (object) array( 'ID' => $id ) : null;
	}
	function is_post_publicly_viewable( $post ) {
		return 'publish' === $GLOBALS['scene']['posts'][ $post->ID ];
	}

	function home_url() {
		return $GLOBALS['scene']['home'] ?? 'https://school.example';
	}
	function network_home_url() {
		return home_url();
	}
	function admin_url( $path = '' ) {
		return home_url() . '/wp-admin/' . $path;
	}
	function plugins_url( $path ) {
		return home_url() . '/wp-content/plugins/reelgate/' . $path;
	}
	function plugin_basename( $file ) {
		return basename( $file );
	}
	function wp_parse_url( $url, $part = -1 ) {
		return parse_url( $url, $part );
	}
	function __( $text ) {
		return $text;
	}
	function esc_html__( $text ) {
		return esc_html( $text );
	}
	function esc_html( $text ) {
		return htmlspecialchars( $text, ENT_QUOTES );
	}
	function esc_attr( $text ) {
		return htmlspecialchars( $text, ENT_QUOTES );
	}
	function wp_json_encode( $value, $flags = 0 ) {
		return json_encode( $value, $flags );
	}
	function wp_unslash( $value ) {
		return is_string( $value ) ? stripslashes( $value ) : $value;
	}
	function wp_date( $format ) {
		return gmdate( $format, Reelgate\time() );
	}
	function wp_list_filter( $list, $wanted ) {
		return array_filter( $list, static fn( $row ) => array() === array_diff_assoc( $wanted, array_filter( $row, 'is_scalar' ) ) );
	}
	function nocache_headers() {}
	function wp_enqueue_script() {}
	function is_wp_error( $value ) {
		return $value instanceof WP_Error;
	}
	function rest_ensure_response( $value ) {
		return $value;
	}
	function wp_send_json( $body, $status = 200 ) {
		throw new Answered( $body, $status );
	}

	function add_shortcode( $name, $call ) {
		$GLOBALS['shortcodes'][ $name ] = $call;
	}
	function shortcode_exists( $name ) {
		return isset( $GLOBALS['shortcodes'][ $name ] );
	}
	function shortcode_atts( $defaults, $given ) {
		return array_intersect_key( $given, $defaults ) + $defaults;
	}
	/** Attributes in double quotes alone. */
	function do_shortcode( $text ) {
		return preg_replace_callback(
			'/\[(\w+)((?:\s+\w+="[^"]*")*)\s*\]/',
			static function ( $found ) {
				preg_match_all( '/(\w+)="([^"]*)"/', $found[2], $pairs );
				return isset( $GLOBALS['shortcodes'][ $found[1] ] ) ? $GLOBALS['shortcodes'][ $found[1] ]( array_combine( $pairs[1], $pairs[2] ) ) : $found[0];
			},
			$text
		);
	}
	function register_block_type( $name, $settings ) {
		WP_Block_Type_Registry::$blocks[ $name ] = (object) $settings;
	}
	function register_rest_route( $space, $path, $settings ) {
		$GLOBALS['routes'][ $path ] = $settings;
	}

	function wp_remote_request( $url, $options ) {
		$headers = array_map( static fn( $name, $value ) => "$name: $value", array_keys( $options['headers'] ), $options['headers'] );
		$http    = array( 'method' => $options['method'], 'header' => $headers, 'content' => (string) $options['body'], 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 10 );
		$body    = @file_get_contents( $url, false, stream_context_create( array( 'http' => $http ) ) );
		if ( false === $body ) {
			return new WP_Error( 'http_request_failed', error_get_last()['message'] ?? 'failed' );
		}
		$GLOBALS['done'][] = array( 'request', array( $options['method'], $url, json_decode( (string) $options['body'], true ) ) );
		return array( 'body' => $body, 'status' => (int) explode( ' ', $http_response_header[0] )[1] );
	}
	function wp_remote_retrieve_response_code( $response ) {
		return $response['status'];
	}
	function wp_remote_retrieve_body( $response ) {
		return $response['body'];
	}

	/** What a step of the scene returns. Before it, what it gives is put in place of what the scene has. */
	function run_step( array $step ) {
		foreach ( $step['with'] ?? array() as $name => $value ) {
			$GLOBALS['scene'][ $name ] = $value;
		}
		switch ( $step['do'] ) {
			case 'shortcode':
				return do_shortcode( $step['text'] );
			case 'block':
				$block = WP_Block_Type_Registry::$blocks[ $step['name'] ];
				return ( $block->render_callback )( $step['attributes'], $step['content'] ?? '' );
			case 'ajax':
				// As WordPress does: what comes is slashed.
				$_POST = array_map( static fn( $value ) => is_string( $value ) ? addslashes( $value ) : $value, $step['fields'] );
				foreach ( array( 'HTTP_ORIGIN', 'HTTP_SEC_FETCH_SITE', 'REQUEST_METHOD', 'REMOTE_ADDR' ) as $name ) {
					$_SERVER[ $name ] = $step['server'][ $name ] ?? array( 'REQUEST_METHOD' => 'POST', 'REMOTE_ADDR' => '192.0.2.7' )[ $name ] ?? null;
				}
				do_action( 'wp_ajax_' . ( get_current_user_id() > 0 || 'reelgate_test' === $step['call'] ? '' : 'nopriv_' ) . $step['call'] );
				return 'no answer';
			case 'rest':
				do_action( 'rest_api_init' );
				$route = $GLOBALS['routes'][ $step['path'] ];
				$reply = ( $route['permission_callback'] )() ? ( $route['callback'] )( $step['query'] ?? array() ) : 'forbidden';
				return is_wp_error( $reply ) ? array( 'error' => $reply->get_error_message() ) + $reply->get_error_data() : $reply;
			case 'call':
				return ( 'Reelgate\\' . $step['name'] )( ...$step['arguments'] );
		}
	}

	foreach ( $scene['constants'] ?? array() as $name => $value ) {
		define( $name, $value );
	}
	if ( ! empty( $scene['otherPlugin'] ) ) {
		add_shortcode( 'vdo', static fn() => 'the other plug-in' );
		register_block_type( 'vdo/block', array( 'render_callback' => static fn() => 'the other plug-in' ) );
	}
	require $argv[1];
	eval( $scene['functions'] ?? '' );
	do_action( 'init' );

	$results = array();
	foreach ( $scene['steps'] as $step ) {
		$done = array();
		try {
			$value = run_step( $step );
		} catch ( Answered $answer ) {
			$value = array( 'status' => $answer->status, 'body' => $answer->body );
		}
		$results[] = array( 'value' => $value, 'done' => $done );
	}
	echo json_encode( $results );
}
